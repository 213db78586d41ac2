"""The permissions of each role. The table is deliberately not derived from the code."""

import pytest

from caret.foundation.ids import TenantId, UserId
from tenants.base.errors import Forbidden
from tenants.base.permissions import (
    ALLOWED_WHILE_CLOSING,
    PERMISSIONS,
    READING,
    Permission,
    Role,
    role_has_permission,
)
from tenants.security.authorization.actor import Actor

#                       owner admin bill audit dev
EXPECTED = {
    "keys.read":        "yes   yes   no   yes   no",
    "keys.read_own":    "yes   yes   no   no    yes",
    "keys.create":      "yes   yes   no   no    no",
    "keys.revoke":      "yes   yes   no   no    no",
    "keys.manage_own":  "yes   yes   no   no    yes",
    "playground.use":   "yes   yes   no   no    yes",
    "policy.read":      "yes   yes   no   yes   yes",
    "policy.write":     "yes   yes   no   no    no",
    "policy.read_overrides":"yes   yes   no   yes   no",
    "usage.read":       "yes   yes   yes  yes   no",
    "usage.read_own":   "yes   yes   no   no    yes",
    "quality.read":     "yes   yes   no   yes   no",
    "quality.read_own": "yes   yes   no   no    yes",
    "tenant.read":      "yes   yes   yes  yes   yes",
    "members.read":     "yes   yes   no   yes   no",
    "members.write":    "yes   yes   no   no    no",
    "members.write_owners": "yes no  no   no    no",
    "sign_in_settings.read":      "yes   yes   no   yes   no",
    "sign_in_settings.write":     "yes   no    no   no    no",
    "teams.read":       "yes   yes   yes  yes   no",
    "teams.write":      "yes   yes   no   no    no",
    "audit.read":       "yes   yes   no   yes   no",
    "audit_sinks.write":       "yes   yes   no   no    no",
    "consent.manage_own":      "yes   yes   no   no    yes",
    "consent.read":     "yes   yes   no   yes   no",
    "billing.read":     "yes   yes   yes  yes   no",
    "billing.write":    "yes   yes   yes  no    no",
    "budgets.write":    "yes   yes   yes  no    no",
    "retention.read":   "yes   yes   no   yes   no",
    "retention.write":  "yes   yes   no   no    no",
    "legal_holds.write":      "yes   yes   no   no    no",
    "exports.use":      "yes   yes   yes  yes   no",
    "data_subjects.export_own":     "yes   yes   yes  yes   yes",
    "data_subjects.erase":   "yes   yes   no   no    no",
    "data_subjects.export":  "yes   yes   no   no    no",
}  # fmt: skip
# The owner of a tenant that is closing.
OLGA = Actor(
    TenantId("t"), UserId("olga"), Role.OWNER, address=None, request_id="", is_closing=True
)
COLUMNS = (Role.OWNER, Role.ADMINISTRATOR, Role.BILLING, Role.AUDITOR, Role.DEVELOPER)


@pytest.mark.parametrize("permission", list(Permission))
def test_roles_have_exactly_the_permissions_in_the_table(permission: Permission) -> None:
    expected = [word == "yes" for word in EXPECTED[permission].split()]

    assert [role_has_permission(role, permission) for role in COLUMNS] == expected


def test_every_role_is_in_the_table() -> None:
    assert set(PERMISSIONS) == set(Role) == set(COLUMNS)


def test_an_auditor_has_only_reading_permissions() -> None:
    assert PERMISSIONS[Role.AUDITOR] <= READING


def test_an_administrator_lacks_only_permissions_about_owners_and_sign_in() -> None:
    missing = PERMISSIONS[Role.OWNER] - PERMISSIONS[Role.ADMINISTRATOR]

    assert missing == {Permission.WRITE_OWNERS, Permission.WRITE_SIGN_IN_SETTINGS}


@pytest.mark.parametrize("permission", list(Permission))
def test_the_owner_of_a_closing_tenant_has_only_permissions_for_closing_tenants(
    permission: Permission,
) -> None:
    assert OLGA.has_permission(permission) == (permission in ALLOWED_WHILE_CLOSING)


def test_the_error_for_a_closing_tenant_says_that_it_is_closing() -> None:
    with pytest.raises(Forbidden, match="closing"):
        OLGA.require(Permission.CREATE_KEYS)


def test_an_actor_without_the_permission_is_rejected() -> None:
    ada = Actor(TenantId("t"), UserId("ada"), Role.DEVELOPER, address=None, request_id="")

    with pytest.raises(Forbidden, match=r"keys\.create"):
        ada.require(Permission.CREATE_KEYS)
