"""The changes of status that the operators' page offers are those that the domain allows."""

import pytest

from caret.contracts.snapshot import TenantStatus
from console.operator_admin.tenants.presenters import status_changes_from
from tenants.identity.members.tenant_status import LEADS_TO


@pytest.mark.parametrize("present", TenantStatus)
def test_the_page_offers_each_allowed_change(present: TenantStatus) -> None:
    assert {change.target for change in status_changes_from(present)} == LEADS_TO[present]


def test_only_closing_for_good_is_final() -> None:
    finals = {each.target for s in TenantStatus for each in status_changes_from(s) if each.is_final}
    assert finals == {TenantStatus.CLOSED}
