"""Scopes of API keys, in tables for operations, snapshots, the REST API and tests.

Each inference scope allows some modes at the gateways. Any other scope grants permissions at the
REST API, and is for service keys only. Some permissions belong to no scope. For example, a key that
could manage members could create a user with more permissions than its own.
"""

from collections.abc import Iterable
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from caret.contracts.policy import Mode
from tenants.base.permissions import Permission


class KeyScope(StrEnum):
    INFERENCE = "inference"  # all modes, including those of later releases
    INLINE = "inference:inline"
    FIM = "inference:fim"
    BLOCK = "inference:block"
    DOCSTRING = "inference:docstring"
    CHAT = "inference:chat"
    EDIT = "inference:edit"
    USAGE_READ = "usage:read"
    KEYS_READ = "keys:read"
    KEYS_WRITE = "keys:write"
    POLICIES_READ = "policies:read"
    POLICIES_WRITE = "policies:write"
    TENANT_READ = "tenant:read"
    MEMBERS_READ = "members:read"
    TEAMS_READ = "teams:read"
    TEAMS_WRITE = "teams:write"
    AUDIT_READ = "audit:read"
    CONSENT_READ = "consent:read"
    QUALITY_READ = "quality:read"
    RETENTION_READ = "retention:read"
    BILLING_READ = "billing:read"
    BUDGETS_WRITE = "budgets:write"
    EXPORTS = "exports"  # an export also needs the scope that reads the same data


_P = Permission

MODES: Final = MappingProxyType(
    {
        KeyScope.INFERENCE: frozenset(Mode),
        # Editor plugins that do not speak Caret's own protocol request inline suggestions over
        # HTTP, in the mode `fim`.
        KeyScope.INLINE: frozenset({Mode.INLINE, Mode.FIM}),
        KeyScope.FIM: frozenset({Mode.FIM}),
        KeyScope.BLOCK: frozenset({Mode.BLOCK}),
        KeyScope.DOCSTRING: frozenset({Mode.DOCSTRING}),
        KeyScope.CHAT: frozenset({Mode.CHAT}),
        KeyScope.EDIT: frozenset({Mode.EDIT}),
    }
)
PERMISSIONS_OF: Final = MappingProxyType(
    {
        KeyScope.USAGE_READ: frozenset({_P.READ_USAGE}),
        KeyScope.KEYS_READ: frozenset({_P.READ_KEYS}),
        KeyScope.KEYS_WRITE: frozenset({_P.READ_KEYS, _P.CREATE_KEYS, _P.REVOKE_KEYS}),
        KeyScope.POLICIES_READ: frozenset({_P.READ_POLICY, _P.READ_OVERRIDES}),
        KeyScope.POLICIES_WRITE: frozenset({_P.READ_POLICY, _P.READ_OVERRIDES, _P.WRITE_POLICY}),
        KeyScope.TENANT_READ: frozenset({_P.READ_TENANT}),
        KeyScope.MEMBERS_READ: frozenset({_P.READ_MEMBERS}),
        KeyScope.TEAMS_READ: frozenset({_P.READ_TEAMS}),
        KeyScope.TEAMS_WRITE: frozenset({_P.READ_TEAMS, _P.WRITE_TEAMS}),
        KeyScope.AUDIT_READ: frozenset({_P.READ_AUDIT}),
        KeyScope.CONSENT_READ: frozenset({_P.READ_CONSENT}),
        KeyScope.QUALITY_READ: frozenset({_P.READ_QUALITY}),
        KeyScope.RETENTION_READ: frozenset({_P.READ_RETENTION}),
        KeyScope.BILLING_READ: frozenset({_P.READ_BILLING}),
        KeyScope.BUDGETS_WRITE: frozenset({_P.READ_BILLING, _P.WRITE_BUDGETS}),
        KeyScope.EXPORTS: frozenset({_P.EXPORT}),
    }
)
DEFAULT_SCOPES: Final = frozenset({KeyScope.INFERENCE})


def list_modes(scopes: Iterable[KeyScope]) -> frozenset[Mode]:
    return frozenset().union(*(MODES.get(scope, ()) for scope in scopes))


def list_permissions(scopes: Iterable[KeyScope]) -> frozenset[Permission]:
    return frozenset().union(*(PERMISSIONS_OF.get(scope, ()) for scope in scopes))


def serialize_scopes(scopes: Iterable[KeyScope]) -> list[str]:
    """Return the values of the scopes, sorted, so that equal sets are stored as equal lists."""
    return sorted(scope.value for scope in scopes)


def parse_scopes(texts: Iterable[str]) -> frozenset[KeyScope]:
    """Parse the scopes of a row. Unknown scopes are left out: they are from a newer release."""
    scopes_by_value = {scope.value: scope for scope in KeyScope}
    return frozenset(scopes_by_value[text] for text in texts if text in scopes_by_value)
