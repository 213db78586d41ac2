"""More people than the known cast: colleagues, teams and invitations, made for one test."""

import secrets
from dataclasses import dataclass, field

from django.utils import timezone

from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant
from tenants.base.bearer_tokens import TenantToken
from tenants.base.permissions import Role
from tenants.identity.domains.operations import claim_domain, verify_domain
from tenants.identity.invitations.operations import invite
from tenants.identity.invitations.queries import InvitationView
from tenants.identity.members.operations import join
from tenants.identity.scim.groups import create_group
from tenants.identity.scim.resources import Group
from tenants.identity.scim.tokens import create_scim_token
from tenants.identity.teams.operations import create_team
from tenants.models import User
from tenants.security.authorization.actor import Actor
from tests.cast import Company, Person


@dataclass(slots=True)
class Mailbox:
    """What would have been mailed."""

    works: bool = True
    mails: list[tuple[str, TenantToken]] = field(default_factory=list)

    def __call__(self, email: str, token: TenantToken) -> bool:
        if self.works:
            self.mails.append((email, token))
        return self.works

    @property
    def last(self) -> str:
        return self.mails[-1][1].text


def make_stranger(email: str | None = None) -> Person:
    """A person without tenant and without password, which takes its time to hash."""
    email = email or f"{secrets.token_hex(6)}@elsewhere.example"
    user = User(email=email, name="", created_at=timezone.now())
    user.set_unusable_password()
    user.save(force_insert=True)
    user_id = UserId(str(user.id))
    nobody = "00000000-0000-0000-0000-000000000000"
    return Person(user_id, email, Actor(nobody, user_id, Role.DEVELOPER, None, ""))  # type: ignore[arg-type]  # no tenant yet


def make_colleague(company: Company, role: Role = Role.DEVELOPER) -> Person:
    stranger = make_stranger(f"{secrets.token_hex(6)}@{company.slug}.example")
    with tenant(company.tenant_id):
        join(
            tenant_id=company.tenant_id,
            user_id=stranger.user_id,
            role=role,
            now=timezone.now(),
        )
    actor = Actor(company.tenant_id, stranger.user_id, role, address="192.0.2.8", request_id="")
    return Person(stranger.user_id, stranger.email, actor)


def make_team(company: Company, name: str | None = None) -> str:
    made = create_team(
        actor=company.platform, name=name or secrets.token_hex(4), now=timezone.now()
    )
    return str(made.id)


def send_invitation(
    company: Company, email: str, *, role: Role = Role.DEVELOPER, mailbox: Mailbox | None = None
) -> InvitationView:
    return invite(
        actor=company.platform,
        email=email,
        role=role,
        mailer=mailbox or Mailbox(),
        now=timezone.now(),
    )


def make_invitation(company: Company) -> str:
    return str(send_invitation(company, f"{secrets.token_hex(4)}@guest.example").id)


def make_domain(company: Company, name: str | None = None, *, verified: bool = False) -> str:
    name = name or f"{secrets.token_hex(4)}.example"
    claimed = claim_domain(actor=company.platform, name=name, now=timezone.now())
    if verified:
        verify_domain(
            actor=company.platform,
            domain_id=claimed.id,
            resolve=lambda asked: [claimed.txt_record] if asked == claimed.name else [],
            now=timezone.now(),
        )
    return str(claimed.id)


def make_scim_token(company: Company) -> tuple[str, str]:
    """Its id and its text."""
    made = create_scim_token(actor=company.platform, name="Entra ID", now=timezone.now())
    return str(made.token.id), made.text


_TOKENS: dict[TenantId, str] = {}


def one_scim_token(company: Company) -> str:
    """Its id; the same each time, as a tenant has few, and revoking one twice is no error."""
    if company.tenant_id not in _TOKENS:
        _TOKENS[company.tenant_id] = make_scim_token(company)[0]
    return _TOKENS[company.tenant_id]


def make_scim_group(company: Company, name: str | None = None) -> str:
    asked = Group(display_name=name or secrets.token_hex(4))
    return str(create_group(actor=company.platform, asked=asked, now=timezone.now()).id)
