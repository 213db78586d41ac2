"""The thresholds of a budget, as its page shows them."""

import uuid
from datetime import UTC, date, datetime, timedelta

from caret.contracts.pricing import BudgetScope
from console.views.budgets.presenters import list_thresholds
from tenants.base.money import Currency
from tenants.billing.budgets.queries import AlertView, BudgetView

NOW = datetime(2026, 11, 2, tzinfo=UTC)


def make_alert(percent: int, *, created_at: datetime = NOW) -> AlertView:
    """Return an alert without deliveries."""
    return AlertView(percent, 900, 1_000, created_at, deliveries=())


def make_budget(*alerts: AlertView) -> BudgetView:
    return BudgetView(
        id=uuid.UUID(int=1),
        scope=BudgetScope.TENANT,
        holder_id=None,
        holder_name=None,
        limit_micros=1_000,
        is_per_seat=False,
        month_limit_micros=1_000,
        currency=Currency.EUR,
        is_hard=False,
        webhook_url="",
        version=1,
        created_at=NOW,
        month=date(2026, 11, 1),
        spent_micros=900,
        is_exhausted=False,
        alerts=alerts,
    )


def list_reported_with_higher(*alerts: AlertView) -> list[int]:
    """Return the thresholds that the page calls reported with a higher threshold, in percent."""
    thresholds = list_thresholds(make_budget(*alerts))
    return [threshold.percent for threshold in thresholds if threshold.is_reported_with_higher]


def test_thresholds_crossed_at_once_are_reported_with_the_highest() -> None:
    assert list_reported_with_higher(make_alert(50), make_alert(80), make_alert(100)) == [50, 80]


def test_an_alert_without_recipients_is_not_reported_with_a_higher_threshold() -> None:
    later = NOW + timedelta(days=1)

    assert list_reported_with_higher(make_alert(50), make_alert(80, created_at=later)) == []


def test_a_threshold_that_was_not_reached_is_not_reported() -> None:
    assert list_reported_with_higher() == []
