"""The known cast of the tests: two companies with people in every role, neighbours who ask.

Slugs and addresses carry a random tail: tests commit, and nothing is emptied between them.
"""

import secrets
import uuid
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.contrib.auth.hashers import make_password
from django.utils import timezone

from caret.contracts.api_key import KeyKind
from caret.foundation.clock import from_unix_ms, to_unix_ms
from caret.foundation.ids import RequestId, TenantId, UserId, new_request_id
from caret.foundation.postgres.tenant_scope import tenant
from tenants.base.permissions import Role
from tenants.identity.api_keys.operations import CreatedKey, create_key
from tenants.identity.api_keys.scopes import Scope
from tenants.identity.api_keys.validation import NewKey
from tenants.identity.members.operations import add_member, create_tenant
from tenants.models import UsageRecord, User
from tenants.security.authorization.actor import Actor, platform_actor

PASSWORD: Final = "correct horse battery"


@dataclass(frozen=True, slots=True)
class Person:
    user_id: UserId
    email: str
    actor: Actor


@dataclass(frozen=True, slots=True)
class Company:
    tenant_id: TenantId
    slug: str
    name: str
    people: dict[Role, Person]

    @property
    def administrator(self) -> Person:
        return self.people[Role.ADMINISTRATOR]

    @property
    def developer(self) -> Person:
        return self.people[Role.DEVELOPER]

    @property
    def platform(self) -> Actor:
        return platform_actor(self.tenant_id)


@dataclass(frozen=True, slots=True)
class Cast:
    acme: Company  # olga owns it, alice administers, bill pays, audrey audits, ada develops
    globex: Company  # bob administers, gus develops: the neighbours


ACME: Final = {
    Role.OWNER: "olga",
    Role.ADMINISTRATOR: "alice",
    Role.BILLING: "bill",
    Role.AUDITOR: "audrey",
    Role.DEVELOPER: "ada",
}
GLOBEX: Final = {Role.ADMINISTRATOR: "bob", Role.DEVELOPER: "gus"}


def make_cast() -> Cast:
    return Cast(acme=make_company("acme", ACME), globex=make_company("globex", GLOBEX))


def make_company(name: str, names: dict[Role, str]) -> Company:
    slug = f"{name}-{secrets.token_hex(4)}"
    tenant_id = create_tenant(slug=slug, name=name.title(), now=timezone.now())
    people = {role: _make_person(tenant_id, slug, role, who) for role, who in names.items()}
    return Company(tenant_id=tenant_id, slug=slug, name=name.title(), people=people)


def make_key(company: Company, owner: Person, *, name: str = "Laptop") -> CreatedKey:
    new = NewKey(kind=KeyKind.DEVELOPER, owner_id=owner.user_id, name=name, expires_at=None)
    return create_key(actor=company.platform, new=new, now=timezone.now())


def make_service_key(company: Company, *scopes: Scope, **fields: Any) -> CreatedKey:
    """As the platform makes it, from whom nothing is held back."""
    values = {"name": "Automation", "expires_at": None} | fields
    new = NewKey(kind=KeyKind.SERVICE, owner_id=None, scopes=frozenset(scopes), **values)
    return create_key(actor=company.platform, new=new, now=timezone.now())


def make_completion(company: Company, person: Person, **fields: Any) -> RequestId:
    """Ingested, as it would have come from a gateway just now."""
    now_ms = to_unix_ms(timezone.now())
    values = _COMPLETION | {"request_id": new_request_id(now_ms=now_ms)} | fields
    with tenant(company.tenant_id):
        UsageRecord.objects.create(
            tenant_id=company.tenant_id,
            occurred_at=from_unix_ms(now_ms),
            user_id=person.user_id,
            key_id=uuid.uuid4(),
            **values,
        )
    return RequestId(str(values["request_id"]))


def completion_fields(**fields: Any) -> dict[str, Any]:
    """All that a usage record has beside whose it is and when."""
    return {"key_id": uuid.uuid4(), **_COMPLETION, **fields}


_COMPLETION: Final[dict[str, Any]] = {
    "protocol": "stream",
    "mode": "inline",
    "language": "python",
    "tier": "fast",
    "pool": "fast",
    "replica": "10.0.0.1:8000",
    "finish": "stop",
    "error_code": "",
    "prompt_tokens": 1_900,
    "cached_tokens": 1_880,
    "generated_tokens": 12,
    "authenticated_ms": 0.2,
    "admitted_ms": 0.4,
    "assembled_ms": 2.4,
    "routed_ms": 2.5,
    "num_at_replica": 1,
    "engine_ms": 40.0,
    "first_token_ms": 43.0,
    "total_ms": 120.0,
}


def _make_person(tenant_id: TenantId, slug: str, role: Role, name: str) -> Person:
    now = timezone.now()
    email = f"{name}@{slug}.example"
    user = User(email=email, name=name.title(), created_at=now, password=_hashed())
    user.save(force_insert=True)
    user_id = UserId(str(user.id))
    add_member(actor=platform_actor(tenant_id), user_id=user_id, role=role, now=now)
    actor = Actor(tenant_id, user_id, role, address="192.0.2.7", request_id="")
    return Person(user_id=user_id, email=email, actor=actor)


@cache
def _hashed() -> str:
    """One hash for all: making it is meant to be slow, and there are thousands of people here."""
    return make_password(PASSWORD)
