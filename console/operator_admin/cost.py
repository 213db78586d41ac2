"""The cost of 1,000 accepted tokens, by pool and in total, for the last 7, 30 and 90 days."""

from dataclasses import dataclass
from typing import Final

import redis
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from console.layout.lists.csv_response import csv_response
from console.layout.lists.pagination import wants_csv
from console.operator_admin.site import operator_required, render_operator_page
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.cost import CostRow, FleetCost, compute_fleet_cost
from tenants.fleet.pools.daily_usage import (
    compute_replica_seconds_a_day,
    read_pool_usage,
    read_replica_seconds,
)
from tenants.fleet.pools.scraping.installation_status import read_installation_status

PERIODS: Final = (7, 30, 90)  # in days
_DEFAULT_DAYS: Final = 30
# The highest price of a replica hour, in whole units of the currency. The setting has the same
# maximum.
_MAX_PRICE: Final = 100_000.0
_COLUMNS: Final = (
    *("pool", "requests", "prompt_tokens", "generated_tokens", "accepted_tokens"),
    *("replica_hours", "cost", "cost_per_1000_accepted_tokens"),
)


@dataclass(frozen=True, slots=True)
class CostPeriod:
    num_days: int
    url: str
    is_selected: bool
    per_1000: float | None  # cost of 1,000 accepted tokens, all pools; None: no accepted tokens


@require_GET
@operator_required
def cost(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    num_days = _parse_num_days(request.GET.get("days", ""))
    price, price_error = _read_price(request.GET.get("price", ""))
    try:
        costs = _compute_costs_by_period(price)
    except redis.RedisError:
        return render_operator_page(
            request, "cost.html", {"title": gettext("Cost"), "is_redis_down": True}, status=503
        )
    selected = costs[num_days]
    if wants_csv(request):
        return _csv_response(selected)
    context = {
        "title": gettext("Cost"),
        "cost": selected,
        "how_counted": _describe_counting(selected),
        "rows": [_to_table_row(row) for row in selected.rows],
        "total": _to_table_row(selected.total),
        "periods": [_to_period(days, costs[days], price, num_days) for days in PERIODS],
        "price": request.GET.get("price", "").strip() or f"{price:.2f}",
        "price_error": price_error,
        "csv_url": f"{_period_url(num_days, price)}&as=csv",
    }
    return render_operator_page(request, "cost.html", context, status=400 if price_error else 200)


@dataclass(frozen=True, slots=True)
class CostTableRow:
    """A pool or the total, with amounts in whole units of the currency."""

    row: CostRow
    cost: float
    per_1000: float | None  # cost of 1,000 accepted tokens; None: no accepted tokens


def _to_table_row(row: CostRow) -> CostTableRow:
    cents = row.cents_per_1000_accepted
    return CostTableRow(row, row.cost_cents / 100, None if cents is None else cents / 100)


def _compute_costs_by_period(price: float) -> dict[int, FleetCost]:
    """Return the costs by the number of days. Raises redis.RedisError.

    `price` is the price of an hour of a replica, in whole units of the currency.
    """
    store, now = connect_to_redis(), timezone.now()
    seconds_a_day = compute_replica_seconds_a_day(read_installation_status(now=now))
    return {
        num_days: compute_fleet_cost(
            read_pool_usage(store, num_days=num_days, now=now),
            read_replica_seconds(store, num_days=num_days, now=now),
            seconds_a_day=seconds_a_day,
            hour_cents=price * 100,
            num_days=num_days,
        )
        for num_days in PERIODS
    }


def _to_period(
    num_days: int, fleet_cost: FleetCost, price: float, selected_days: int
) -> CostPeriod:
    total = _to_table_row(fleet_cost.total)
    return CostPeriod(
        num_days, _period_url(num_days, price), num_days == selected_days, total.per_1000
    )


def _period_url(num_days: int, price: float) -> str:
    return f"{reverse('operators:cost')}?days={num_days}&price={price:.2f}"


def _parse_num_days(text: str) -> int:
    return int(text) if text in {str(period) for period in PERIODS} else _DEFAULT_DAYS


def _read_price(text: str) -> tuple[float, str]:
    """Return the price of an hour of a replica, and an error message ("": none).

    For an empty or invalid text, the price is the one in the settings.
    """
    default: float = settings.REPLICA_HOUR_CENTS / 100
    if not text.strip():
        return default, ""
    error = gettext("Enter a number, such as 2.50.")
    try:
        price = float(text.strip().replace(",", "."))
    except ValueError:
        return default, error
    return (price, "") if 0 <= price <= _MAX_PRICE else (default, error)


def _csv_response(fleet_cost: FleetCost) -> HttpResponse:
    lines = []
    for row in (*fleet_cost.rows, fleet_cost.total):
        table_row, counts = _to_table_row(row), row.counts
        per_1000 = "" if table_row.per_1000 is None else f"{table_row.per_1000:.6f}"
        lines.append(
            (
                # The total has no pool.
                *(row.pool or "all", counts.requests, counts.prompt_tokens),
                *(counts.generated_tokens, counts.accepted_tokens, f"{row.replica_hours:.2f}"),
                *(f"{table_row.cost:.2f}", per_1000),
            )
        )
    return csv_response(
        f"cost-{fleet_cost.num_days}-days", _COLUMNS, lines, notes=[_describe_counting(fleet_cost)]
    )


def _describe_counting(fleet_cost: FleetCost) -> str:
    """Return the explanation of the figures that the page and the file show."""
    text = gettext(
        "Replica hours are sampled every minute; samples exist for %(n)s of %(days)s "
        "days. On other days with requests, the replicas that are up now are assumed to "
        "have run all day. A replica that serves several pools counts in equal parts for "
        "each. Accepted tokens are reported by editors. The cost covers all requests, "
        "accepted or not."
    )
    return text % {"n": fleet_cost.num_measured, "days": fleet_cost.num_days}
