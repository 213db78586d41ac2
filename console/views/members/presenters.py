"""Display names of roles, sign-in methods and invitation states."""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.texts.labels import ROLE_LABELS
from tenants.base.permissions import Permission, Role
from tenants.identity.invitations.queries import InvitationState
from tenants.identity.members.directory import PASSWORD, PROVIDER
from tenants.security.authorization.actor import Actor

ROLE_LEADS: Final[dict[Role, Promise]] = {
    Role.OWNER: _("Full access, including managing owners and single sign-on"),
    Role.ADMINISTRATOR: _("Full access, except managing owners and single sign-on"),
    Role.BILLING: _("Usage, invoices and budgets"),
    Role.AUDITOR: _("Read-only access to everything"),
    Role.DEVELOPER: _("Code completion with their own keys"),
}
WAY_NAMES: Final[dict[str, Promise]] = {
    PASSWORD: _("Password"),
    PROVIDER: _("Identity provider"),
    "totp": _("Authenticator app"),
    "webauthn": _("Passkey"),
}
STATE_NAMES: Final[dict[InvitationState, Promise]] = {
    InvitationState.OPEN: _("Pending"),
    InvitationState.ACCEPTED: _("Accepted"),
    InvitationState.REVOKED: _("Revoked"),
    InvitationState.EXPIRED: _("Expired"),
}


def role_choices(actor: Actor) -> list[tuple[str, str]]:
    """Return the roles that the actor may assign. Developers, the most common role, come first."""
    may_make_owners = actor.has_permission(Permission.WRITE_OWNERS)
    roles = [role for role in reversed(Role) if role is not Role.OWNER or may_make_owners]
    return [(role.value, f"{ROLE_LABELS[role]} · {ROLE_LEADS[role]}") for role in roles]


def way_names(ways: tuple[str, ...]) -> str:
    return ", ".join(str(WAY_NAMES.get(way, way)) for way in ways)
