"""Rating of tokens. Each batch of usage records is rated exactly once.

BillingState.rated_batch is the number of the last batch that was rated. One database transaction
reads the batches after this number, posts their tokens and raises the number. If the worker is
killed before the commit, nothing has changed. A concurrent worker waits for the lock of
lock_billing and then reads the new number.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from django.db.models import F, Sum, TextField, Value
from django.db.models.functions import Coalesce, Least, TruncDate

from caret.contracts.policy import Tier
from caret.contracts.pricing import TokenCounts, cost_micros
from caret.contracts.usage import FinishReason
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import choose_booking_month, start_of_month, utc_day
from tenants.billing.budgets.alerts import create_alerts
from tenants.billing.budgets.month_spend import SpendEntry, add_spend
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.operations import (
    Posting,
    SourceKind,
    TransactionDraft,
    TransactionSource,
    lock_billing,
    post_transaction,
)
from tenants.billing.ledger.queries import find_open_month
from tenants.billing.plans.price_book import PlanPrice
from tenants.billing.plans.queries import read_price_book
from tenants.billing.pricing import (
    PricedTokenKind,
    TokenLine,
    get_token_count,
    get_unit_price,
    price_additional_tokens,
)
from tenants.billing.stripe.meter_events import enqueue_meter_events
from tenants.models import BillingState, LedgerEntry, UsageRecord
from tenants.usage.ingestion.batch_numbers import read_latest_batch

# In one database transaction. A batch contains a tenant's records from one read of the stream.
MAX_BATCHES: Final = 500
_MODEL: Final = Coalesce(F("model"), Value("", TextField()))


@dataclass(frozen=True, slots=True)
class RatingResult:
    num_batches: int
    has_more: bool  # more batches can be rated by another call
    spend_entries: tuple[SpendEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class _TokenUsage:
    """The billable tokens of a user, tier and model on one day."""

    day: date
    user_id: UserId | None  # None: service keys
    tier: Tier
    model: str  # "": unknown, in records of older gateways
    tokens: TokenCounts


def rate_tokens(
    tenant_id: TenantId,
    *,
    now: datetime,
    until_batch: int | None = None,
    max_batches: int = MAX_BATCHES,
) -> RatingResult:
    """Rate at most `max_batches` batches, up to number `until_batch`; None: up to the newest.

    Also adds to the months' spending, and creates the budget alerts that are due. Raises NotFound
    for a tenant without a plan.
    """
    with tenant_scope(tenant_id):
        state = lock_billing(tenant_id)
        newest = read_latest_batch(tenant_id)
        newest = newest if until_batch is None else min(newest, until_batch)
        last_batch = min(newest, state.rated_batch + max_batches)
        num_batches = last_batch - state.rated_batch
        if num_batches <= 0:
            return RatingResult(num_batches=0, has_more=False)
        spend_entries = _rate_batches(state, last_batch, now)
        add_spend(tenant_id, spend_entries)
        price = read_price_book(tenant_id).price_on(utc_day(now))
        create_alerts(tenant_id, start_of_month(utc_day(now)), price=price, now=now)
        state.rated_batch = last_batch
        state.save(update_fields=["rated_batch"])
    return RatingResult(num_batches, has_more=last_batch < newest, spend_entries=spend_entries)


def _rate_batches(state: BillingState, last_batch: int, now: datetime) -> tuple[SpendEntry, ...]:
    usage_by_day: defaultdict[date, list[_TokenUsage]] = defaultdict(list)
    for token_usage in _read_usage(state, last_batch):
        usage_by_day[token_usage.day].append(token_usage)
    prices = read_price_book(TenantId(str(state.tenant_id)))
    spend_entries: list[SpendEntry] = []
    for day, usage in sorted(usage_by_day.items()):
        price = prices.price_on(day)
        if price is None:
            continue  # the tenant had no plan or price on that day
        source = TransactionSource(
            SourceKind.USAGE, f"{state.rated_batch + 1}-{last_batch}:{day.isoformat()}"
        )
        _book_day(state, source, day, _PricedUsage(price, _sum_by_line(usage, price)), now)
        spend_entries.extend(_price_spending(usage, price))
    return tuple(spend_entries)


def _read_usage(state: BillingState, last_batch: int) -> list[_TokenUsage]:
    """Return the sums of billable tokens by day, tier, model and user. One query."""
    # The rules of caret.contracts.pricing.billable_tokens, in SQL. If the number of cached tokens
    # is unknown, the whole prompt counts as cached. Requests that failed or generated nothing are
    # not billed.
    cached = Least(Coalesce(F("cached_tokens"), F("prompt_tokens")), F("prompt_tokens"))
    rows = (
        UsageRecord.objects.filter(
            tenant_id=state.tenant_id,
            batch__gt=state.rated_batch,
            batch__lte=last_batch,
            generated_tokens__gt=0,
        )
        .exclude(finish_reason=FinishReason.ERROR)
        .values("tier", "user_id", used_model=_MODEL, day=TruncDate("occurred_at"))
        .annotate(
            prompt=Sum("prompt_tokens"), cached=Sum(cached), generated=Sum("generated_tokens")
        )
        .order_by("day", "tier", "used_model", "user_id")
    )
    return [_to_token_usage(row) for row in rows]


def _to_token_usage(row: Mapping[str, Any]) -> _TokenUsage:
    return _TokenUsage(
        day=row["day"],
        user_id=None if row["user_id"] is None else UserId(str(row["user_id"])),
        tier=Tier(row["tier"]),
        model=row["used_model"],
        tokens=TokenCounts(row["prompt"] - row["cached"], row["cached"], row["generated"]),
    )


def _sum_by_line(usage: list[_TokenUsage], price: PlanPrice) -> dict[TokenLine, int]:
    """Return the tokens of each line that has at least one, in the order of `sort_key`."""
    sums: defaultdict[TokenLine, int] = defaultdict(int)
    for token_usage in usage:
        model = token_usage.model if token_usage.model in price.model_prices else ""
        for kind in PricedTokenKind:
            line = TokenLine(token_usage.tier, kind, model)
            sums[line] += get_token_count(kind, token_usage.tokens)
    lines = sorted(sums, key=lambda line: line.sort_key)
    return {line: sums[line] for line in lines if sums[line]}


@dataclass(frozen=True, slots=True)
class _PricedUsage:
    """The tokens of one day, and the price of that day."""

    price: PlanPrice
    tokens: dict[TokenLine, int]


def _book_day(
    state: BillingState, source: TransactionSource, day: date, priced: _PricedUsage, now: datetime
) -> None:
    revenue = [_build_posting(state, day, line, priced) for line in priced.tokens]
    total = -sum(posting.amount_micros for posting in revenue)
    draft = TransactionDraft(
        source=source,
        day=day,
        month=choose_booking_month(day, open_month=find_open_month(state), now=now),
        memo=f"Tokens of {day.isoformat()}",
        postings=[Posting(LedgerAccountCode.UNBILLED, total), *revenue],
    )
    transaction_id = post_transaction(state, draft, now=now)
    if transaction_id is not None:
        enqueue_meter_events(TenantId(str(state.tenant_id)), transaction_id, now=now)


def _build_posting(
    state: BillingState, day: date, line: TokenLine, priced: _PricedUsage
) -> Posting:
    num_tokens = priced.tokens[line]
    prices = priced.price.find_prices(line.tier, model=line.model)
    price = get_unit_price(line.kind, prices)
    before = _read_running_total(state, day, line)
    return Posting(
        account=LedgerAccountCode.TOKENS,
        amount_micros=-price_additional_tokens(num_tokens, after=before, price=price),
        line=line.code,
        quantity=num_tokens,
        running=before + num_tokens,
        price_micros=price,
    )


def _read_running_total(state: BillingState, day: date, line: TokenLine) -> int:
    """Return the number of tokens that are already posted for the day and line."""
    entries = LedgerEntry.objects.filter(tenant_id=state.tenant_id, day=day, line=line.code)
    return entries.order_by("-running").values_list("running", flat=True).first() or 0


def _price_spending(usage: list[_TokenUsage], price: PlanPrice) -> list[SpendEntry]:
    return [
        SpendEntry(
            token_usage.day,
            token_usage.user_id,
            cost_micros(
                price.find_prices(token_usage.tier, model=token_usage.model), token_usage.tokens
            ),
        )
        for token_usage in usage
    ]
