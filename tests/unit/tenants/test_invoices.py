"""Invoices: the condition on which a month can be invoiced."""

from datetime import UTC, date, datetime

import pytest

from tenants.billing.invoices.operations import _is_month_complete
from tenants.models import BillingState

_OCTOBER = date(2026, 10, 1)


@pytest.mark.parametrize(
    ("seats_booked_on", "now", "is_complete"),
    [
        (date(2026, 10, 31), datetime(2026, 11, 1, 6, tzinfo=UTC), True),
        (date(2026, 10, 31), datetime(2026, 11, 1, 5, 59, tzinfo=UTC), False),
        (date(2026, 10, 30), datetime(2026, 11, 9, tzinfo=UTC), False),
        (None, datetime(2026, 11, 9, tzinfo=UTC), False),
        (date(2026, 11, 8), datetime(2026, 11, 9, tzinfo=UTC), True),
    ],
)
def test_a_month_is_complete_six_hours_after_its_end_if_all_its_seats_are_booked(
    seats_booked_on: date | None, now: datetime, is_complete: bool
) -> None:
    state = BillingState(seats_booked_on=seats_booked_on)

    assert _is_month_complete(state, _OCTOBER, now) is is_complete
