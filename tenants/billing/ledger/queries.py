"""Queries of the ledger's transactions, and of the first month that is open for bookings."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery, Sum

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_day, start_of_next_month
from tenants.base.pagination import (
    Page,
    PagePosition,
    build_page,
    decode_cursor,
    fetch_page_rows,
    map_page,
)
from tenants.base.permissions import Permission
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.operations import SourceKind
from tenants.models import BillingState, LedgerEntry, LedgerTransaction, Subscription
from tenants.security.authorization.actor import Actor

# The kinds of sources that post to each account. A query for one account reads only these.
_SOURCES_BY_ACCOUNT: Final = {
    LedgerAccountCode.UNBILLED: (SourceKind.USAGE, SourceKind.SEATS, SourceKind.INVOICE),
    LedgerAccountCode.RECEIVABLE: (SourceKind.INVOICE, SourceKind.CREDIT_NOTE),
    LedgerAccountCode.CREDITS: (SourceKind.CREDIT, SourceKind.INVOICE),
    LedgerAccountCode.TAX: (SourceKind.INVOICE, SourceKind.CREDIT_NOTE),
    LedgerAccountCode.SEATS: (SourceKind.SEATS,),
    LedgerAccountCode.TOKENS: (SourceKind.USAGE,),
    LedgerAccountCode.CORRECTIONS: (SourceKind.CREDIT_NOTE,),
    LedgerAccountCode.ROUNDING: (SourceKind.INVOICE,),
    LedgerAccountCode.PROMOTIONS: (SourceKind.CREDIT,),
}
# A transaction is posted on its own day or later, except for differences between clocks.
_MAX_CLOCK_DIFFERENCE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """A filter of transactions. None: not filtered."""

    month: date | None = None  # the first day of the invoice's month
    account: LedgerAccountCode | None = None  # at least one entry has this account
    first: date | None = None  # the earliest and the latest day, both inclusive
    last: date | None = None


@dataclass(frozen=True, slots=True)
class LedgerEntryView:
    """An entry of a transaction; see LedgerEntry."""

    account: str
    amount_micros: int  # positive: debit
    line: str
    quantity: int
    price_micros: int


@dataclass(frozen=True, slots=True)
class TransactionView:
    """A transaction with its entries in their order; see LedgerTransaction."""

    id: UUID
    source_kind: str
    source_id: str
    currency: str
    day: date
    month: date
    memo: str
    created_at: datetime
    entries: tuple[LedgerEntryView, ...]


@dataclass(frozen=True, slots=True)
class DayTotal:
    """The number and the amount of one kind's transactions of a day."""

    day: date
    source_kind: str
    num_transactions: int  # without those of amount 0
    debit_micros: int  # sum of the positive entries; the negative ones have the same sum


def read_page_of_ledger(
    *, actor: Actor, limit: int, cursor: str | None, ledger_filter: LedgerFilter
) -> Page[TransactionView]:
    """Return a page of transactions, newest first. Two queries. Raises Forbidden, InvalidValue."""
    actor.require(Permission.READ_BILLING)
    with tenant_scope(actor.tenant_id):
        transactions = _filter_transactions(actor, ledger_filter)
        rows = fetch_page_rows(transactions, limit=limit, after=decode_cursor(cursor))
        page = build_page(
            rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
        )
        entries: defaultdict[UUID, list[LedgerEntryView]] = defaultdict(list)
        page_entries = LedgerEntry.objects.filter(
            tenant_id=actor.tenant_id, transaction_id__in=[row.id for row in page.rows]
        )
        for entry in page_entries.order_by("transaction_id", "position"):
            entries[entry.transaction_id].append(_to_entry_view(entry))
    return map_page(page, lambda row: _to_transaction_view(row, tuple(entries[row.id])))


def list_day_totals(
    *, actor: Actor, ledger_filter: LedgerFilter, days: Collection[date]
) -> list[DayTotal]:
    """Return totals by day and kind of the transactions of `days` that match the filter.

    One query. Raises Forbidden.
    """
    actor.require(Permission.READ_BILLING)
    with tenant_scope(actor.tenant_id):
        transactions = _filter_transactions(actor, ledger_filter).filter(
            id=OuterRef("transaction_id")
        )
        rows = (
            LedgerEntry.objects.filter(tenant_id=actor.tenant_id, day__in=days, amount_micros__gt=0)
            .annotate(kind=Subquery(transactions.order_by().values("source_kind")))
            .exclude(kind=None)  # None: the filter excludes the entry's transaction
            .order_by("day", "kind")
            .values_list("day", "kind")
            .annotate(num=Count("transaction_id", distinct=True), total=Sum("amount_micros"))
        )
        return [DayTotal(*row) for row in rows]


def _filter_transactions(actor: Actor, ledger_filter: LedgerFilter) -> QuerySet[LedgerTransaction]:
    transactions = LedgerTransaction.objects.filter(tenant_id=actor.tenant_id)
    if ledger_filter.month is not None:
        transactions = transactions.filter(month=ledger_filter.month)
    if ledger_filter.first is not None:
        transactions = transactions.filter(day__gte=ledger_filter.first)
        # The bound of created_at limits the part of the index that a page reads. date.min has no
        # earlier day.
        if ledger_filter.first > date.min:
            transactions = transactions.filter(
                created_at__gte=start_of_day(ledger_filter.first - _MAX_CLOCK_DIFFERENCE)
            )
    if ledger_filter.last is not None:
        transactions = transactions.filter(day__lte=ledger_filter.last)
    if ledger_filter.account is not None:
        entries = LedgerEntry.objects.filter(
            tenant_id=actor.tenant_id, transaction_id=OuterRef("id"), account=ledger_filter.account
        )
        transactions = transactions.filter(
            Exists(entries), source_kind__in=_SOURCES_BY_ACCOUNT[ledger_filter.account]
        )
    return transactions


def _to_transaction_view(
    row: LedgerTransaction, entries: tuple[LedgerEntryView, ...]
) -> TransactionView:
    return TransactionView(
        id=row.id,
        source_kind=row.source_kind,
        source_id=row.source_id,
        currency=row.currency,
        day=row.day,
        month=row.month,
        memo=row.memo,
        created_at=row.created_at,
        entries=entries,
    )


def _to_entry_view(entry: LedgerEntry) -> LedgerEntryView:
    return LedgerEntryView(
        account=entry.account,
        amount_micros=entry.amount_micros,
        line=entry.line,
        quantity=entry.quantity,
        price_micros=entry.price_micros,
    )


def find_open_month(state: BillingState) -> date:
    """Return the month after the last invoiced one. Must run inside the tenant's scope.

    Before the first invoice, return the month of the first subscription.
    """
    if state.invoiced_month is not None:
        return start_of_next_month(state.invoiced_month)
    subscriptions = Subscription.objects.filter(tenant_id=state.tenant_id).order_by("starts_on")
    return subscriptions.values_list("starts_on", flat=True)[0].replace(day=1)
