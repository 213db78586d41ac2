"""The operators' page offers exactly the status changes that `tenant_status` allows."""

import pytest

from caret.contracts.snapshot import TenantStatus
from console.operator_admin.tenants.presenters import list_status_changes
from tenants.identity.members.tenant_status import ALLOWED_TRANSITIONS


@pytest.mark.parametrize("current", TenantStatus)
def test_the_page_offers_each_allowed_change(current: TenantStatus) -> None:
    assert {change.target for change in list_status_changes(current)} == ALLOWED_TRANSITIONS[
        current
    ]


def test_only_closing_for_good_is_final() -> None:
    finals = {
        change.target for s in TenantStatus for change in list_status_changes(s) if change.is_final
    }
    assert finals == {TenantStatus.CLOSED}
