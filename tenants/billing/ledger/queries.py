"""Reads the ledger, transaction by transaction."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from caret.foundation.postgres.tenancy import tenant
from tenants.members.actor import Actor
from tenants.members.permissions import Permission
from tenants.models import LedgerEntry, LedgerTransaction
from tenants.paging import Page, Place, first_of, mapped, page_of, read_cursor


@dataclass(frozen=True, slots=True)
class EntryView:
    account: str
    amount_micros: int  # above 0: debit
    line: str
    quantity: int
    price_micros: int


@dataclass(frozen=True, slots=True)
class TransactionView:
    id: UUID
    source_kind: str
    source_id: str
    currency: str
    day: date
    month: date
    memo: str
    created_at: datetime
    entries: tuple[EntryView, ...]


def page_of_ledger(
    *, actor: Actor, limit: int, cursor: str | None, month: date | None
) -> Page[TransactionView]:
    """Newest first. `month`: that in which it is billed, by its first day; None: all. Raises
    Forbidden, Invalid. Two queries."""
    actor.require(Permission.READ_BILLING)
    with tenant(actor.tenant_id):
        found = LedgerTransaction.objects.filter(tenant_id=actor.tenant_id)
        if month is not None:
            found = found.filter(month=month)
        rows = first_of(found, limit=limit, after=read_cursor(cursor))
        page = page_of(rows, limit=limit, place=lambda row: Place(row.created_at, row.id))
        entries: defaultdict[UUID, list[EntryView]] = defaultdict(list)
        of_page = LedgerEntry.objects.filter(
            tenant_id=actor.tenant_id, transaction_id__in=[row.id for row in page.rows]
        )
        for entry in of_page.order_by("transaction_id", "position"):
            entries[entry.transaction_id].append(_entry(entry))
    return mapped(page, lambda row: _transaction(row, tuple(entries[row.id])))


def _transaction(row: LedgerTransaction, entries: tuple[EntryView, ...]) -> TransactionView:
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


def _entry(entry: LedgerEntry) -> EntryView:
    return EntryView(
        account=entry.account,
        amount_micros=entry.amount_micros,
        line=entry.line,
        quantity=entry.quantity,
        price_micros=entry.price_micros,
    )
