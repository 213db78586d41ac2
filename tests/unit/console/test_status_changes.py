"""The operators' page of a tenant offers exactly the allowed changes of the tenant's status."""

import pytest

from caret.contracts.snapshot import TenantStatus
from console.operator_admin.tenants.presenters import list_status_changes
from tenants.identity.members.tenant_status import ALLOWED_TRANSITIONS


@pytest.mark.parametrize("current", TenantStatus)
def test_the_page_offers_exactly_the_allowed_changes(current: TenantStatus) -> None:
    targets = {change.target for change in list_status_changes(current)}

    assert targets == ALLOWED_TRANSITIONS[current]


def test_only_closing_a_tenant_is_marked_as_final() -> None:
    changes = [change for status in TenantStatus for change in list_status_changes(status)]

    assert {change.target for change in changes if change.is_final} == {TenantStatus.CLOSED}
