"""The modes and permissions of each scope. The table is deliberately not derived from the code."""

import pytest

from caret.contracts.policy import Mode
from tenants.base.permissions import Permission, Role, role_has_permission
from tenants.identity.api_keys.scopes import (
    MODES,
    PERMISSIONS_OF,
    KeyScope,
    list_modes,
    list_permissions,
    parse_scopes,
    serialize_scopes,
)

EXPECTED = {
    "inference": "inline fim block docstring chat edit",
    "inference:inline": "inline fim",
    "inference:fim": "fim",
    "inference:block": "block",
    "inference:docstring": "docstring",
    "inference:chat": "chat",
    "inference:edit": "edit",
    "usage:read": "usage.read",
    "keys:read": "keys.read",
    "keys:write": "keys.read keys.create keys.revoke",
    "policies:read": "policy.read policy.read_overrides",
    "policies:write": "policy.read policy.read_overrides policy.write",
    "tenant:read": "tenant.read",
    "members:read": "members.read",
    "teams:read": "teams.read",
    "teams:write": "teams.read teams.write",
    "audit:read": "audit.read",
    "consent:read": "consent.read",
    "quality:read": "quality.read",
    "retention:read": "retention.read",
    "billing:read": "billing.read",
    "budgets:write": "billing.read budgets.write",
    "exports": "exports.use",
}
# Permissions that no key can have, such as those for a user's own data and for creating users.
USERS_ONLY = {
    "sign_in_settings.read",
    "sign_in_settings.write",
    "billing.write",  # includes the recipient of invoices
    "audit_sinks.write",  # a holder of the key could secretly send the whole audit log elsewhere
    "keys.read_own",
    "keys.manage_own",
    "playground.use",  # belongs to a page; a key that creates keys has keys.create
    "usage.read_own",
    "quality.read_own",
    "consent.manage_own",
    "legal_holds.write",
    "data_subjects.export_own",
    "data_subjects.erase",
    "data_subjects.export",  # contains text that a user has typed, decrypted
    "retention.write",  # it deletes data
    "members.write",
    "members.write_owners",
}


@pytest.mark.parametrize("scope", list(KeyScope))
def test_scopes_allow_exactly_the_modes_and_permissions_in_the_table(scope: KeyScope) -> None:
    allowed = {*list_modes({scope}), *list_permissions({scope})}

    assert allowed == set(EXPECTED[scope].split())


def test_every_scope_is_in_exactly_one_table() -> None:
    assert set(MODES) | set(PERMISSIONS_OF) == set(KeyScope)
    assert not set(MODES) & set(PERMISSIONS_OF)


def test_permissions_without_a_scope_are_for_users_only() -> None:
    assert {
        str(permission) for permission in set(Permission) - list_permissions(KeyScope)
    } == USERS_ONLY


def test_no_scope_allows_more_than_an_administrator() -> None:
    assert all(
        role_has_permission(Role.ADMINISTRATOR, permission)
        for permission in list_permissions(KeyScope)
    )


def test_the_modes_of_inference_are_all_modes() -> None:
    single = set(MODES) - {KeyScope.INFERENCE}

    assert list_modes(single) == list_modes({KeyScope.INFERENCE}) == frozenset(Mode)


def test_unknown_scopes_are_ignored_and_serialized_scopes_are_sorted() -> None:
    assert parse_scopes(["inference:chat", "payroll:write"]) == {KeyScope.CHAT}
    assert serialize_scopes({KeyScope.INLINE, KeyScope.CHAT}) == [
        "inference:chat",
        "inference:inline",
    ]
