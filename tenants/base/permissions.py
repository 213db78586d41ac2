"""The permissions of each role: one table for operations, queries, pages and tests."""

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
    MANAGE_OWN_KEYS = "keys.manage_own"  # create (if the policy allows it) and revoke own keys
    USE_PLAYGROUND = "playground.use"  # this creates an API key that expires after an hour
    READ_POLICY = "policy.read"
    WRITE_POLICY = "policy.write"
    # The overrides for teams and users, with their reasons.
    READ_OVERRIDES = "policy.read_overrides"
    READ_USAGE = "usage.read"
    READ_OWN_USAGE = "usage.read_own"
    READ_QUALITY = "quality.read"  # acceptance and latency
    READ_OWN_QUALITY = "quality.read_own"
    READ_TENANT = "tenant.read"
    READ_MEMBERS = "members.read"
    WRITE_MEMBERS = "members.write"
    WRITE_OWNERS = "members.write_owners"  # granting the owner role, and taking it away
    READ_SIGN_IN_SETTINGS = "sign_in_settings.read"  # domains, identity providers, SCIM
    # An identity provider decides which account a person signs in to, and this can be an owner's
    # account. Therefore only owners may configure it.
    WRITE_SIGN_IN_SETTINGS = "sign_in_settings.write"
    READ_TEAMS = "teams.read"
    WRITE_TEAMS = "teams.write"
    READ_AUDIT = "audit.read"
    WRITE_AUDIT_SINKS = "audit_sinks.write"  # destinations of audit entries, such as a SIEM
    MANAGE_OWN_CONSENT = "consent.manage_own"
    READ_CONSENT = "consent.read"
    READ_BILLING = "billing.read"
    WRITE_BILLING = "billing.write"  # customer details on invoices
    WRITE_BUDGETS = "budgets.write"
    READ_RETENTION = "retention.read"
    WRITE_RETENTION = "retention.write"
    WRITE_LEGAL_HOLDS = "legal_holds.write"
    EXPORT = "exports.use"  # get files of data that the member may read
    EXPORT_OR_ERASE_OWN_DATA = "data_subjects.export_own"  # the member's own personal data
    ERASE_DATA_SUBJECTS = "data_subjects.erase"
    # The personal data of any member, with decrypted content.
    EXPORT_DATA_SUBJECTS = "data_subjects.export"


_P = Permission
_EVERYTHING = frozenset(Permission)
# A closing tenant still allows these permissions, and auditors have them except _OWN_DATA_ONLY.
# With two exceptions, these permissions only allow reading. The first exception is the creation of
# exports. The second is the erasure of the member's own data, which the law requires until the last
# day.
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
        _P.EXPORT_OR_ERASE_OWN_DATA,
        _P.EXPORT,
    }
)
_OWN_DATA_ONLY: Final = frozenset({_P.READ_OWN_KEYS, _P.READ_OWN_USAGE, _P.READ_OWN_QUALITY})
# The law requires exports and erasures of personal data until the last day. Withdrawing consent is
# also an erasure.
ALLOWED_WHILE_CLOSING: Final = READING | {
    _P.MANAGE_OWN_CONSENT,
    _P.EXPORT_DATA_SUBJECTS,
    _P.ERASE_DATA_SUBJECTS,
}

PERMISSIONS: Final = MappingProxyType(
    {
        Role.OWNER: _EVERYTHING,
        # With WRITE_OWNERS, an administrator could become an owner and remove the other owners.
        Role.ADMINISTRATOR: _EVERYTHING - {_P.WRITE_OWNERS, _P.WRITE_SIGN_IN_SETTINGS},
        Role.BILLING: frozenset(
            {
                _P.READ_TENANT,
                _P.READ_USAGE,
                _P.READ_TEAMS,
                _P.READ_BILLING,
                _P.WRITE_BILLING,
                _P.WRITE_BUDGETS,
                _P.EXPORT_OR_ERASE_OWN_DATA,
                _P.EXPORT,
            }
        ),
        Role.AUDITOR: READING - _OWN_DATA_ONLY,  # auditors read the data of all members instead
        Role.DEVELOPER: frozenset(
            {
                _P.READ_TENANT,
                _P.READ_OWN_KEYS,
                _P.MANAGE_OWN_KEYS,
                _P.USE_PLAYGROUND,
                _P.READ_POLICY,
                _P.READ_OWN_USAGE,
                _P.MANAGE_OWN_CONSENT,
                _P.READ_OWN_QUALITY,
                _P.EXPORT_OR_ERASE_OWN_DATA,
            }
        ),
    }
)


def roles_with_permission(permission: Permission) -> list[Role]:
    return [role for role in Role if role_has_permission(role, permission)]


def role_has_permission(role: Role, permission: Permission) -> bool:
    return permission in PERMISSIONS[role]
