"""The cost of each day and ledger line.

A busy tenant has tens of thousands of ledger entries a day, too many to add up for a page. All
entries of a line on one day have the same price, and the last of them contains the running total of
the quantity. So the last entry is enough to compute the cost. Only the last entries are read, with
the index that rating uses: at most seven a day, and six more for each model with prices of its own.
"""

from dataclasses import dataclass
from datetime import date
from typing import Final

from django.db import connection

from caret.foundation.ids import TenantId
from tenants.billing.pricing import TIER_LINES, price_seats, price_tokens
from tenants.billing.rating.seats import LINE as SEATS

_LAST_ENTRIES: Final = """
WITH tier_lines AS (SELECT unnest(%s::text[]) AS line),
models AS (
  SELECT DISTINCT jsonb_object_keys(price.model_prices) AS model
  FROM tenants_subscription AS subscription JOIN tenants_price_version AS price USING (plan_id)
  WHERE subscription.tenant_id = %s
),
lines AS (
  SELECT %s::text AS line
  UNION ALL SELECT line FROM tier_lines
  UNION ALL SELECT line || '.' || model FROM tier_lines CROSS JOIN models
)
SELECT days.day::date, lines.line, last_entry.running, last_entry.price_micros
FROM generate_series(%s::date, %s::date, interval '1 day') AS days(day)
CROSS JOIN lines
CROSS JOIN LATERAL (
  SELECT running, price_micros FROM tenants_ledger_entry
  WHERE tenant_id = %s AND day = days.day::date AND line = lines.line
  ORDER BY running DESC LIMIT 1
) AS last_entry
ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class DailyCostLine:
    """The quantity and cost of one ledger line on one day."""

    day: date
    line: str  # seats, fast.prompt, fast.prompt.MODEL ...
    quantity: int  # tokens or seats
    price_micros: int  # for a million tokens, or for a seat's month
    amount_micros: int


def read_daily_costs(tenant_id: TenantId, *, first: date, last: date) -> list[DailyCostLine]:
    """Return the lines with usage from `first` to `last`, both inclusive. One query.

    Must run inside the tenant's scope.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _LAST_ENTRIES, [[*TIER_LINES], str(tenant_id), SEATS, first, last, str(tenant_id)]
        )
        rows = cursor.fetchall()
    return [
        DailyCostLine(day, line, running, price, _compute_cost(day, line, running, price))
        for day, line, running, price in rows
    ]


def _compute_cost(day: date, line: str, quantity: int, price_micros: int) -> int:
    if line == SEATS:
        return price_seats(quantity, day=day, month_micros=price_micros)
    return price_tokens(quantity, price_micros)
