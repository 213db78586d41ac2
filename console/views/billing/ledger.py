"""The ledger's page. For each day, it shows totals, and transactions with all their entries."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, NamedTuple

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.layout.lists.date_range_form import DateRangeForm
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.billing.presenters import name_of
from console.views.billing.tabs import tabs
from tenants.base.money import MICROS_PER_CENT
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.operations import SourceKind
from tenants.billing.ledger.queries import (
    LedgerEntryView,
    LedgerFilter,
    TransactionView,
    list_day_totals,
    read_page_of_ledger,
)
from tenants.billing.pricing import parse_line

# Titles of transactions. For an invoice or credit note, the transaction's memo is the title: the
# document's number and, for a credit note, its reason.
_TITLES: Final[dict[str, Promise]] = {
    SourceKind.USAGE: _("Tokens"),
    SourceKind.SEATS: _("Seats"),
    SourceKind.CREDIT: _("Credit granted"),
}
# Titles of the totals of a day.
_KIND_TITLES: Final = _TITLES | {
    SourceKind.INVOICE: _("Invoices"),
    SourceKind.CREDIT_NOTE: _("Credit notes"),
}


@dataclass(frozen=True, slots=True)
class EntrySide:
    """An entry of a transaction, on the debit side or on the credit side."""

    entry: LedgerEntryView
    account: str  # name of the account
    product: str  # name of the seats or tokens; "": the entry is not for usage
    is_tokens: bool  # True: the price is for a million tokens. False: for a seat and month, or none

    @property
    def debit_micros(self) -> int | None:
        """The amount of a debit; None for a credit."""
        return self.entry.amount_micros if self.entry.amount_micros > 0 else None

    @property
    def credit_micros(self) -> int | None:
        """The amount of a credit, not negative; None for a debit."""
        return -self.entry.amount_micros if self.entry.amount_micros <= 0 else None


@dataclass(frozen=True, slots=True)
class TransactionRow:
    transaction: TransactionView
    title: str
    amount_micros: int  # total of the debits, which is also the total of the credits
    sides: tuple[EntrySide, ...]
    document: int | None  # number of the invoice or credit note; None: neither


class _LedgerCsvRow(NamedTuple):
    """A line of the CSV file: one entry of a transaction."""

    row: TransactionRow
    side: EntrySide


@dataclass(frozen=True, slots=True)
class DayKindTotal:
    """The total of one kind of transaction on one day."""

    title: str  # of the kind
    num_transactions: int
    micros: int  # total of the debits


@dataclass(frozen=True, slots=True)
class LedgerDay:
    """The transactions of a day on this page of the list.

    The totals count all transactions of the day that match the filter.
    """

    day: date
    currency: str
    totals: list[DayKindTotal]
    rows: list[TransactionRow]
    # Rows with amounts below a cent. They are not in `rows`: the page folds them into one line.
    small_rows: list[TransactionRow]

    @property
    def small_micros(self) -> int:
        return sum(row.amount_micros for row in self.small_rows)


_ACCOUNTS: Final[dict[LedgerAccountCode, Promise]] = {
    LedgerAccountCode.UNBILLED: _("Not yet invoiced"),
    LedgerAccountCode.RECEIVABLE: _("Invoiced"),
    LedgerAccountCode.CREDITS: _("Unused credit"),
    LedgerAccountCode.TAX: _("Tax"),
    LedgerAccountCode.SEATS: _("Seats"),
    LedgerAccountCode.TOKENS: _("Tokens"),
    LedgerAccountCode.CORRECTIONS: _("Corrections"),
    LedgerAccountCode.ROUNDING: _("Rounding"),
    LedgerAccountCode.PROMOTIONS: _("Promotional credit"),
}


class LedgerFilterForm(DateRangeForm):
    account = forms.ChoiceField(
        label=_("Account"),
        required=False,
        choices=[("", _("All")), *((code.value, name) for code, name in _ACCOUNTS.items())],
    )


def _find_transactions(query: ListQuery) -> Page[TransactionRow]:
    page = read_page_of_ledger(
        actor=query.actor,
        limit=query.limit,
        cursor=query.cursor,
        ledger_filter=_read_filter(query),
    )
    return map_page(page, _to_row)


def _read_filter(query: ListQuery) -> LedgerFilter:
    filters = query.filters
    account = LedgerAccountCode(filters["account"]) if filters["account"] else None
    return LedgerFilter(account=account, first=filters["first"], last=filters["last"])


def _group_by_day(query: ListQuery, page: Page[TransactionRow]) -> dict[str, Any]:
    """Return the page's days, newest first, for the template. Queries the totals of the days."""
    rows: defaultdict[date, list[TransactionRow]] = defaultdict(list)
    for row in page.rows:
        rows[row.transaction.day].append(row)
    totals: defaultdict[date, list[DayKindTotal]] = defaultdict(list)
    if rows:
        for day_total in list_day_totals(
            actor=query.actor, ledger_filter=_read_filter(query), days=rows.keys()
        ):
            title = str(_KIND_TITLES[day_total.source_kind])
            totals[day_total.day].append(
                DayKindTotal(title, day_total.num_transactions, day_total.debit_micros)
            )
    days = [_present_day(day, rows[day], totals[day]) for day in sorted(rows, reverse=True)]
    return {"tabs": tabs("billing-ledger"), "days": days}


def _present_day(day: date, rows: list[TransactionRow], totals: list[DayKindTotal]) -> LedgerDay:
    """Return the day for the template. Documents are never among the small rows."""
    small_rows = [
        row for row in rows if row.amount_micros < MICROS_PER_CENT and row.document is None
    ]
    if len(small_rows) == 1:  # folding a single row would save no space
        small_rows = []
    return LedgerDay(
        day=day,
        currency=rows[0].transaction.currency,
        totals=totals,
        rows=[row for row in rows if row not in small_rows],
        small_rows=small_rows,
    )


_LEDGER: Final = ListPage(
    template="console/billing/ledger.html",
    fragment="console/billing/_ledger.html",
    query=_find_transactions,
    page_rows=50,
    form=LedgerFilterForm,
    shows_errors=True,
    context=_group_by_day,
    # One line for each entry. Debits are positive, credits negative.
    csv=CsvFile(
        "ledger",
        {
            "day": lambda line: line.row.transaction.day,
            "month": lambda line: line.row.transaction.month,
            "transaction": lambda line: line.row.transaction.id,
            "title": lambda line: line.row.title,
            "account": lambda line: line.side.entry.account,
            "for": lambda line: line.side.product,
            "quantity": lambda line: line.side.entry.quantity,
            "price_micros": lambda line: line.side.entry.price_micros,
            "amount_micros": lambda line: line.side.entry.amount_micros,
            "currency": lambda line: line.row.transaction.currency,
            "booked_at": lambda line: line.row.transaction.created_at,
        },
        split=lambda row: [_LedgerCsvRow(row, side) for side in row.sides],
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def ledger(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _LEDGER.render(request, member)


def _to_row(transaction: TransactionView) -> TransactionRow:
    return TransactionRow(
        transaction=transaction,
        title=str(_TITLES.get(transaction.source_kind, transaction.memo)),
        amount_micros=sum(max(0, entry.amount_micros) for entry in transaction.entries),
        sides=tuple(_present_side(entry) for entry in transaction.entries),
        document=_document_number(transaction),
    )


def _present_side(entry: LedgerEntryView) -> EntrySide:
    return EntrySide(
        entry,
        str(_ACCOUNTS[LedgerAccountCode(entry.account)]),
        name_of(entry.line) if entry.line else "",
        is_tokens=parse_line(entry.line) is not None,
    )


def _document_number(transaction: TransactionView) -> int | None:
    is_document = transaction.source_kind in (SourceKind.INVOICE, SourceKind.CREDIT_NOTE)
    return int(transaction.source_id) if is_document else None
