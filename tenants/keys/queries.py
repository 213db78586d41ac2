"""Lists API keys: all of a tenant's, or for those who may not see them, their own."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.db.models import QuerySet

from caret.contracts.credential import KeyKind, PresentedKey
from caret.foundation.ids import LookupId, TenantId, UserId
from caret.foundation.postgres.tenancy import tenant
from tenants.errors import NotFound
from tenants.keys.digest import matches
from tenants.members.actor import Actor
from tenants.members.permissions import Permission
from tenants.models import ApiKey
from tenants.texts import is_storable

MAX_PAGE: Final = 200


class KeyState(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class KeyView:
    lookup_id: LookupId
    kind: KeyKind
    name: str
    owner_id: UserId | None  # None: a service key
    owner_email: str | None
    state: KeyState
    created_at: datetime
    expires_at: datetime | None  # None: never
    revoked_at: datetime | None
    last_used_at: datetime | None  # to the minute; None: never used


@dataclass(frozen=True, slots=True)
class KeyPage:
    keys: list[KeyView]  # newest first
    total: int


def list_keys(*, actor: Actor, limit: int, offset: int, now: datetime) -> KeyPage:
    """Raises Forbidden. `limit` is at most MAX_PAGE. Two queries."""
    assert 1 <= limit <= MAX_PAGE
    with tenant(actor.tenant_id):
        visible = _visible_to(actor)
        page = visible.order_by("-created_at", "lookup_id")[offset : offset + limit]
        return KeyPage(keys=[_view(key, now) for key in page], total=visible.count())


def find_key(*, actor: Actor, lookup_id: LookupId, now: datetime) -> KeyView:
    """Raises Forbidden, NotFound."""
    require_lookup_id(lookup_id)
    with tenant(actor.tenant_id):
        try:
            return _view(_visible_to(actor).get(lookup_id=lookup_id), now)
        except ApiKey.DoesNotExist as error:
            raise NotFound("There is no such key.") from error


def require_lookup_id(lookup_id: LookupId) -> None:
    """Raises NotFound for a text that Postgres would not even look for."""
    if not is_storable(lookup_id):
        raise NotFound("There is no such key.")


def holds(*, tenant_id: TenantId, key: PresentedKey, now: datetime) -> bool:
    """Whether the tenant has this very key in force. For the platform itself: asks no role."""
    with tenant(tenant_id):
        row = ApiKey.objects.filter(lookup_id=key.lookup_id).order_by("id").first()
    if row is None or _state(row, now) is not KeyState.ACTIVE:
        return False
    return matches(key, digest=bytes(row.digest), pepper_version=row.pepper_version)


def _visible_to(actor: Actor) -> QuerySet[ApiKey]:
    keys = ApiKey.objects.filter(tenant_id=actor.tenant_id).select_related("owner")
    if actor.may(Permission.READ_KEYS):
        return keys
    actor.require(Permission.READ_OWN_KEYS)
    return keys.none() if actor.user_id is None else keys.filter(owner=uuid.UUID(actor.user_id))


def _view(key: ApiKey, now: datetime) -> KeyView:
    return KeyView(
        lookup_id=LookupId(key.lookup_id),
        kind=KeyKind(key.kind),
        name=key.name,
        owner_id=None if key.owner_id is None else UserId(str(key.owner_id)),
        owner_email=None if key.owner is None else key.owner.email,
        state=_state(key, now),
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        last_used_at=key.last_used_at,
    )


def _state(key: ApiKey, now: datetime) -> KeyState:
    if key.revoked_at is not None:
        return KeyState.REVOKED
    if key.expires_at is not None and key.expires_at <= now:
        return KeyState.EXPIRED
    return KeyState.ACTIVE
