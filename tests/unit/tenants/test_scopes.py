"""The whole table of scopes, listed independently of the code on purpose."""

import pytest

from caret.contracts.policy import Mode
from tenants.base.permissions import Permission, Role, role_has_permission
from tenants.identity.api_keys.scopes import (
    MODES,
    PERMISSIONS_OF,
    KeyScope,
    modes_of,
    permissions_of,
    read_scopes,
    stored,
)

EXPECTED = {
    "inference": "inline fim block docstring chat",
    "inference:inline": "inline",
    "inference:fim": "fim",
    "inference:block": "block",
    "inference:docstring": "docstring",
    "inference:chat": "chat",
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
# Never allowed to keys: a user's own data (a key is no user), and creating users.
FOR_PEOPLE = {
    "sign_in_settings.read",
    "sign_in_settings.write",
    "billing.write",  # the recipient of invoices
    "audit_sinks.write",  # a holder of the key could secretly send the whole audit log elsewhere
    "keys.read_own",
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
def test_the_table_says_what_was_meant(scope: KeyScope) -> None:
    opened = {*modes_of({scope}), *permissions_of({scope})}

    assert opened == set(EXPECTED[scope].split())


def test_every_scope_is_in_one_table() -> None:
    assert set(MODES) | set(PERMISSIONS_OF) == set(KeyScope)
    assert not set(MODES) & set(PERMISSIONS_OF)


def test_what_no_scope_opens_is_for_people() -> None:
    assert {str(each) for each in set(Permission) - permissions_of(KeyScope)} == FOR_PEOPLE


def test_no_scope_opens_what_an_administrator_may_not() -> None:
    assert all(role_has_permission(Role.ADMINISTRATOR, each) for each in permissions_of(KeyScope))


def test_all_modes_together_are_what_inference_opens() -> None:
    single = set(MODES) - {KeyScope.INFERENCE}

    assert modes_of(single) == modes_of({KeyScope.INFERENCE}) == frozenset(Mode)


def test_a_scope_of_another_release_opens_nothing() -> None:
    assert read_scopes(["inference:chat", "payroll:write"]) == {KeyScope.CHAT}
    assert stored({KeyScope.INLINE, KeyScope.CHAT}) == ["inference:chat", "inference:inline"]
