"""The whole table of roles and permissions, written down a second time on purpose."""

import pytest

from caret.foundation.ids import TenantId, UserId
from tenants.errors import Forbidden
from tenants.members.actor import Actor
from tenants.members.permissions import PERMISSIONS, Permission, Role, allows

#                       owner admin bill audit dev
EXPECTED = {
    "keys.read":        "yes   yes   no   yes   no",
    "keys.read_own":    "yes   yes   no   no    yes",
    "keys.create":      "yes   yes   no   no    no",
    "keys.revoke":      "yes   yes   no   no    no",
    "policy.read":      "yes   yes   no   yes   yes",
    "policy.write":     "yes   yes   no   no    no",
    "usage.read":       "yes   yes   yes  yes   no",
    "usage.read_own":   "yes   yes   no   no    yes",
    "members.add":      "yes   yes   no   no    no",
}  # fmt: skip
COLUMNS = (Role.OWNER, Role.ADMINISTRATOR, Role.BILLING, Role.AUDITOR, Role.DEVELOPER)


@pytest.mark.parametrize("permission", list(Permission))
def test_the_table_says_what_was_meant(permission: Permission) -> None:
    expected = [word == "yes" for word in EXPECTED[permission].split()]

    assert [allows(role, permission) for role in COLUMNS] == expected


def test_every_role_is_in_the_table() -> None:
    assert set(PERMISSIONS) == set(Role) == set(COLUMNS)


def test_an_actor_without_the_permission_is_refused() -> None:
    ada = Actor(TenantId("t"), UserId("ada"), Role.DEVELOPER, address=None, request_id="")

    with pytest.raises(Forbidden, match=r"keys\.create"):
        ada.require(Permission.CREATE_KEYS)
