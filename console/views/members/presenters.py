"""Descriptions of roles, and display names of sign-in methods and invitation states."""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.texts.labels import ROLE_LABELS
from tenants.base.permissions import Permission, Role
from tenants.identity.invitations.queries import InvitationState
from tenants.identity.members.directory import PASSWORD, PROVIDER
from tenants.security.authorization.actor import Actor

ROLE_DESCRIPTIONS: Final[dict[Role, Promise]] = {
    Role.OWNER: _("Full access, including managing owners and single sign-on"),
    Role.ADMINISTRATOR: _("Full access, except managing owners and single sign-on"),
    Role.BILLING: _("Usage, invoices and budgets"),
    Role.AUDITOR: _("Read-only access to everything"),
    Role.DEVELOPER: _("Code completion with their own keys"),
}
# By the names in MemberDirectoryRow.signs_in_by.
_SIGN_IN_METHOD_NAMES: Final[dict[str, Promise]] = {
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


def list_role_choices(actor: Actor) -> list[tuple[str, str]]:
    """Return the values and labels of the roles that the actor may assign.

    The most common role, developer, comes first.
    """
    may_make_owners = actor.has_permission(Permission.WRITE_OWNERS)
    roles = [role for role in reversed(Role) if role is not Role.OWNER or may_make_owners]
    return [(role.value, f"{ROLE_LABELS[role]} · {ROLE_DESCRIPTIONS[role]}") for role in roles]


def name_sign_in_methods(methods: tuple[str, ...]) -> str:
    """Return the display names of the methods, separated by commas."""
    return ", ".join(str(_SIGN_IN_METHOD_NAMES.get(method, method)) for method in methods)
