"""What each role may do: one table, read by operations, queries, pages and tests."""

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Role(StrEnum):
    OWNER = "owner"
    ADMINISTRATOR = "administrator"
    BILLING = "billing"
    AUDITOR = "auditor"
    DEVELOPER = "developer"


class Permission(StrEnum):
    READ_KEYS = "keys.read"
    READ_OWN_KEYS = "keys.read_own"
    CREATE_KEYS = "keys.create"
    REVOKE_KEYS = "keys.revoke"
    READ_POLICY = "policy.read"
    WRITE_POLICY = "policy.write"
    READ_USAGE = "usage.read"
    READ_OWN_USAGE = "usage.read_own"
    ADD_MEMBERS = "members.add"


_P = Permission
_EVERYTHING = frozenset(Permission)

PERMISSIONS: Final = MappingProxyType(
    {
        Role.OWNER: _EVERYTHING,
        Role.ADMINISTRATOR: _EVERYTHING,
        Role.BILLING: frozenset({_P.READ_USAGE}),
        Role.AUDITOR: frozenset({_P.READ_KEYS, _P.READ_POLICY, _P.READ_USAGE}),
        Role.DEVELOPER: frozenset({_P.READ_OWN_KEYS, _P.READ_POLICY, _P.READ_OWN_USAGE}),
    }
)


def allows(role: Role, permission: Permission) -> bool:
    return permission in PERMISSIONS[role]
