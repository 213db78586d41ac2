"""Rows of the pages about API keys, and names of states and scopes."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.texts.labels import KEY_KIND_LABELS
from tenants.base.permissions import Permission
from tenants.identity.api_keys.queries import KeyState, KeyView
from tenants.identity.api_keys.scopes import MODES, KeyScope, serialize_scopes
from tenants.security.authorization.actor import Actor

STATE_NAMES: Final[dict[KeyState, Promise]] = {
    KeyState.ACTIVE: _("Active"),
    KeyState.EXPIRED: _("Expired"),
    KeyState.REVOKED: _("Revoked"),
}
# Scopes for completions.
MODE_NAMES: Final[dict[KeyScope, Promise]] = {
    KeyScope.INFERENCE: _("All completion modes, including future ones"),
    KeyScope.INLINE: _("Inline suggestions"),
    KeyScope.FIM: _("Fill in the middle"),
    KeyScope.BLOCK: _("Blocks"),
    KeyScope.DOCSTRING: _("Docstrings"),
    KeyScope.CHAT: _("Chat"),
    KeyScope.EDIT: _("Next edits"),
}


class KeyPreset(StrEnum):
    """The purpose of a new key, as the form offers it."""

    CODE = "code"
    CHAT = "chat"
    ALL = "all"
    NOTHING = "none"  # no completions: for service keys that use only the REST API
    ADVANCED = "advanced"  # the user chooses each mode


PRESET_NAMES: Final[dict[KeyPreset, Promise]] = {
    KeyPreset.CODE: _("Code completion"),
    KeyPreset.CHAT: _("Chat"),
    KeyPreset.ALL: _("All"),
    KeyPreset.NOTHING: _("REST API only"),
    KeyPreset.ADVANCED: _("Advanced"),
}
PRESET_SCOPES: Final = {
    KeyPreset.CODE: frozenset({KeyScope.INLINE, KeyScope.FIM, KeyScope.EDIT}),
    KeyPreset.CHAT: frozenset({KeyScope.CHAT}),
    KeyPreset.ALL: frozenset({KeyScope.INFERENCE}),
    KeyPreset.NOTHING: frozenset[KeyScope](),
}
# Scopes for the REST API.
API_NAMES: Final[dict[KeyScope, Promise]] = {
    KeyScope.USAGE_READ: _("Read usage"),
    KeyScope.KEYS_READ: _("List keys"),
    KeyScope.KEYS_WRITE: _("Create, rotate and revoke keys"),
    KeyScope.POLICIES_READ: _("Read policies"),
    KeyScope.POLICIES_WRITE: _("Change policies"),
    KeyScope.TENANT_READ: _("Read tenant details"),
    KeyScope.MEMBERS_READ: _("List members"),
    KeyScope.TEAMS_READ: _("List teams"),
    KeyScope.TEAMS_WRITE: _("Change teams"),
    KeyScope.AUDIT_READ: _("Read the audit log"),
    KeyScope.CONSENT_READ: _("Read consent records"),
    KeyScope.QUALITY_READ: _("Read quality reports"),
    KeyScope.RETENTION_READ: _("Read retention settings"),
    KeyScope.BILLING_READ: _("Read bills and budgets"),
    KeyScope.BUDGETS_WRITE: _("Change budgets"),
    KeyScope.EXPORTS: _("Export data that the key can read"),
}
# Kinds of the state's <c-badge>.
_TONES: Final = {KeyState.ACTIVE: "good", KeyState.EXPIRED: "off", KeyState.REVOKED: "off"}


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key, and what the actor may do with it."""

    key: KeyView
    prefix: str  # beginning of the key's text, which identifies the key
    kind_name: str
    state_name: str
    tone: str  # kind of the state's <c-badge>
    is_active: bool
    is_leaked: bool
    can_rotate: bool
    can_revoke: bool


@dataclass(frozen=True, slots=True)
class ScopeLine:
    name: str
    code: str  # as in the API


def key_lines(actor: Actor, keys: list[KeyView]) -> list[KeyLine]:
    return [key_line(actor, key) for key in keys]


def key_line(actor: Actor, key: KeyView) -> KeyLine:
    is_active = key.state is KeyState.ACTIVE
    return KeyLine(
        key=key,
        prefix=f"cpk_{key.kind}_{key.lookup_id}",
        kind_name=_kind_name(key),
        state_name=str(STATE_NAMES[key.state]),
        tone=_TONES[key.state],
        is_active=is_active,
        is_leaked=key.leaked_at is not None,
        can_rotate=is_active
        and not key.is_playground
        and actor.has_permission(Permission.CREATE_KEYS),
        can_revoke=key.state is not KeyState.REVOKED and _may_revoke(actor, key),
    )


def _kind_name(key: KeyView) -> str:
    if key.is_playground:
        return gettext("Playground")
    return gettext("Editor") if key.is_device else str(KEY_KIND_LABELS[key.kind])


def _may_revoke(actor: Actor, key: KeyView) -> bool:
    is_own = key.owner_id is not None and key.owner_id == actor.user_id
    return actor.has_permission(Permission.REVOKE_KEYS) or (
        is_own and actor.has_permission(Permission.MANAGE_OWN_KEYS)
    )


def scope_lines(scopes: frozenset[KeyScope]) -> list[ScopeLine]:
    """Return the scopes as lines, completion modes first."""
    names = MODE_NAMES | API_NAMES
    codes = sorted(serialize_scopes(scopes), key=lambda code: (KeyScope(code) not in MODES, code))
    return [ScopeLine(str(names[KeyScope(code)]), code) for code in codes]
