"""The ledger by day: totals, and transactions with all their entries."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

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

# Titles of transactions; the page shows the day next to them. The title of an invoice or credit
# note is its number, the title of a correction is its reason.
_TITLES: Final[dict[str, Promise]] = {
    SourceKind.USAGE: _("Tokens"),
    SourceKind.SEATS: _("Seats"),
    SourceKind.CREDIT: _("Credit granted"),
}
_KIND_TITLES: Final = _TITLES | {
    SourceKind.INVOICE: _("Invoices"),
    SourceKind.CREDIT_NOTE: _("Credit notes"),
}


@dataclass(frozen=True, slots=True)
class EntrySide:
    entry: LedgerEntryView
    account: str
    product: str  # "": the entry has no line of usage
    is_tokens: bool  # priced per million; False: seats, priced by the month, or no usage

    @property
    def debit_micros(self) -> int | None:
        """The amount of a debit; None for a credit."""
        return self.entry.amount_micros if self.entry.amount_micros > 0 else None

    @property
    def credit_micros(self) -> int | None:
        return -self.entry.amount_micros if self.entry.amount_micros <= 0 else None


@dataclass(frozen=True, slots=True)
class TransactionRow:
    transaction: TransactionView
    title: str
    amount_micros: int  # total of the debits, which equals the credits
    sides: tuple[EntrySide, ...]
    document: int | None  # number of the invoice or credit note; None: neither


@dataclass(frozen=True, slots=True)
class DayKindTotal:
    title: str
    num_transactions: int
    micros: int


@dataclass(frozen=True, slots=True)
class LedgerDay:
    """The transactions of a day on this page. The totals count all transactions of the day."""

    day: date
    currency: str
    totals: list[DayKindTotal]
    rows: list[TransactionRow]
    small_rows: list[TransactionRow]  # amounts below a cent, folded into one line

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
    return map_page(page, lambda transaction: row_of(transaction, _ACCOUNTS))


def _read_filter(query: ListQuery) -> LedgerFilter:
    filters = query.filters
    account = LedgerAccountCode(filters["account"]) if filters["account"] else None
    return LedgerFilter(account=account, first=filters["first"], last=filters["last"])


def _group_by_day(query: ListQuery, page: Page[TransactionRow]) -> dict[str, Any]:
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
    small = [row for row in rows if row.amount_micros < MICROS_PER_CENT and row.document is None]
    if len(small) == 1:  # one line takes as much space as its fold
        small = []
    return LedgerDay(
        day=day,
        currency=rows[0].transaction.currency,
        totals=totals,
        rows=[row for row in rows if row not in small],
        small_rows=small,
    )


_LEDGER: Final = ListPage(
    template="console/billing/ledger.html",
    fragment="console/billing/_ledger.html",
    query=_find_transactions,
    page_rows=50,
    form=LedgerFilterForm,
    shows_errors=True,
    context=_group_by_day,
    # One row for each entry. Debits are positive, credits negative.
    csv=CsvFile(
        "ledger",
        {
            "day": lambda entry: entry[0].transaction.day,
            "month": lambda entry: entry[0].transaction.month,
            "transaction": lambda entry: entry[0].transaction.id,
            "title": lambda entry: entry[0].title,
            "account": lambda entry: entry[1].entry.account,
            "for": lambda entry: entry[1].product,
            "quantity": lambda entry: entry[1].entry.quantity,
            "price_micros": lambda entry: entry[1].entry.price_micros,
            "amount_micros": lambda entry: entry[1].entry.amount_micros,
            "currency": lambda entry: entry[0].transaction.currency,
            "booked_at": lambda entry: entry[0].transaction.created_at,
        },
        split=lambda row: [(row, side) for side in row.sides],
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def ledger(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _LEDGER.render(request, member)


def row_of(
    transaction: TransactionView, accounts: Mapping[LedgerAccountCode, Promise]
) -> TransactionRow:
    return TransactionRow(
        transaction=transaction,
        title=str(_TITLES.get(transaction.source_kind, transaction.memo)),
        amount_micros=sum(max(0, entry.amount_micros) for entry in transaction.entries),
        sides=tuple(_present_side(entry, accounts) for entry in transaction.entries),
        document=_document_number(transaction),
    )


def _present_side(
    entry: LedgerEntryView, accounts: Mapping[LedgerAccountCode, Promise]
) -> EntrySide:
    return EntrySide(
        entry,
        str(accounts[LedgerAccountCode(entry.account)]),
        name_of(entry.line) if entry.line else "",
        is_tokens=parse_line(entry.line) is not None,
    )


def _document_number(transaction: TransactionView) -> int | None:
    issued = transaction.source_kind in (SourceKind.INVOICE, SourceKind.CREDIT_NOTE)
    return int(transaction.source_id) if issued else None
