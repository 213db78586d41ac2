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
    USE_PLAYGROUND = "playground.use"  # with a key of its own, which lives for an hour
    READ_POLICY = "policy.read"
    WRITE_POLICY = "policy.write"
    READ_OVERRIDES = "policy.read_overrides"  # what is said of teams and users, and why for each
    READ_USAGE = "usage.read"
    READ_OWN_USAGE = "usage.read_own"
    READ_QUALITY = "quality.read"
    READ_OWN_QUALITY = "quality.read_own"
    READ_TENANT = "tenant.read"
    READ_MEMBERS = "members.read"
    WRITE_MEMBERS = "members.write"
    WRITE_OWNERS = "members.write_owners"  # making an owner, and making one something else
    READ_SIGN_IN_SETTINGS = "sign_in_settings.read"  # domains, identity providers, SCIM
    # An identity provider decides who signs in as whom, the owner included: an owner's matter.
    WRITE_SIGN_IN_SETTINGS = "sign_in_settings.write"
    READ_TEAMS = "teams.read"
    WRITE_TEAMS = "teams.write"
    READ_AUDIT = "audit.read"
    WRITE_AUDIT_SINKS = "audit_sinks.write"  # to a SIEM
    MANAGE_OWN_CONSENT = "consent.manage_own"
    READ_CONSENT = "consent.read"
    READ_BILLING = "billing.read"
    WRITE_BILLING = "billing.write"  # whom invoices are made out to
    WRITE_BUDGETS = "budgets.write"
    READ_RETENTION = "retention.read"
    WRITE_RETENTION = "retention.write"
    WRITE_LEGAL_HOLDS = "legal_holds.write"
    EXPORT = "exports.use"  # of what one may read anyway, as files
    EXPORT_OWN_DATA = "data_subjects.export_own"  # all that is held about oneself
    ERASE_DATA_SUBJECTS = "data_subjects.erase"
    EXPORT_DATA_SUBJECTS = "data_subjects.export"  # ... about a member, opened content included


_P = Permission
_EVERYTHING = frozenset(Permission)
# What an auditor is given at most, and what is left while a tenant is closing: each of these only
# looks, but for export and erasure, which the law wants to the last day.
READING: Final = frozenset(
    {
        _P.READ_KEYS,
        _P.READ_OWN_KEYS,
        _P.READ_POLICY,
        _P.READ_OVERRIDES,
        _P.READ_USAGE,
        _P.READ_OWN_USAGE,
        _P.READ_QUALITY,
        _P.READ_OWN_QUALITY,
        _P.READ_TENANT,
        _P.READ_MEMBERS,
        _P.READ_TEAMS,
        _P.READ_AUDIT,
        _P.READ_CONSENT,
        _P.READ_BILLING,
        _P.READ_SIGN_IN_SETTINGS,
        _P.READ_RETENTION,
        _P.EXPORT_OWN_DATA,
        _P.EXPORT,
    }
)
_ONES_OWN: Final = frozenset({_P.READ_OWN_KEYS, _P.READ_OWN_USAGE, _P.READ_OWN_QUALITY})
# Withdrawing consent erases.
ALLOWED_WHILE_CLOSING: Final = READING | {
    _P.MANAGE_OWN_CONSENT,
    _P.EXPORT_DATA_SUBJECTS,
    _P.ERASE_DATA_SUBJECTS,
}

PERMISSIONS: Final = MappingProxyType(
    {
        Role.OWNER: _EVERYTHING,
        # Else an administrator could make himself an owner, and the owner nothing.
        Role.ADMINISTRATOR: _EVERYTHING - {_P.WRITE_OWNERS, _P.WRITE_SIGN_IN_SETTINGS},
        Role.BILLING: frozenset(
            {
                _P.READ_TENANT,
                _P.READ_USAGE,
                _P.READ_TEAMS,
                _P.READ_BILLING,
                _P.WRITE_BILLING,
                _P.WRITE_BUDGETS,
                _P.EXPORT_OWN_DATA,
                _P.EXPORT,
            }
        ),
        Role.AUDITOR: READING - _ONES_OWN,  # he sees everybody's
        Role.DEVELOPER: frozenset(
            {
                _P.READ_TENANT,
                _P.READ_OWN_KEYS,
                _P.USE_PLAYGROUND,
                _P.READ_POLICY,
                _P.READ_OWN_USAGE,
                _P.MANAGE_OWN_CONSENT,
                _P.READ_OWN_QUALITY,
                _P.EXPORT_OWN_DATA,
            }
        ),
    }
)


def roles_with_permission(permission: Permission) -> list[Role]:
    return [role for role in Role if role_has_permission(role, permission)]


def role_has_permission(role: Role, permission: Permission) -> bool:
    return permission in PERMISSIONS[role]
