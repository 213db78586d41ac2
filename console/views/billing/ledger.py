"""The ledger: transactions with all their entries."""

from typing import Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.layout.lists.date_range_form import DateRangeForm
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.billing.ledger_presenters import TransactionRow, row_of
from console.views.billing.tabs import tabs
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.queries import LedgerFilter, page_of_ledger

_ACCOUNTS: Final[dict[LedgerAccountCode, Promise]] = {
    LedgerAccountCode.UNBILLED: _("Not yet invoiced"),
    LedgerAccountCode.RECEIVABLE: _("Invoiced"),
    LedgerAccountCode.CREDITS: _("Credits"),
    LedgerAccountCode.TAX: _("Tax"),
    LedgerAccountCode.SEATS: _("Seats"),
    LedgerAccountCode.TOKENS: _("Tokens"),
    LedgerAccountCode.CORRECTIONS: _("Corrections"),
    LedgerAccountCode.ROUNDING: _("Rounding"),
    LedgerAccountCode.PROMOTIONS: _("Credits granted"),
}


class LedgerFilterForm(DateRangeForm):
    account = forms.ChoiceField(
        label=_("Account"),
        required=False,
        choices=[("", _("All")), *((code.value, name) for code, name in _ACCOUNTS.items())],
    )


def _find_transactions(asked: ListQuery) -> Page[TransactionRow]:
    filters = asked.filters
    account = LedgerAccountCode(filters["account"]) if filters["account"] else None
    page = page_of_ledger(
        actor=asked.actor,
        limit=asked.limit,
        cursor=asked.cursor,
        asked=LedgerFilter(account=account, first=filters["first"], last=filters["last"]),
    )
    return map_page(page, lambda found: row_of(found, _ACCOUNTS))


_LEDGER: Final = ListPage(
    template="console/billing/ledger.html",
    fragment="console/billing/_ledger.html",
    query=_find_transactions,
    page_rows=50,
    form=LedgerFilterForm,
    shows_errors=True,
    context=lambda _asked, _page: {"tabs": tabs("billing-ledger")},
    # A row for each entry. Debits are above 0.
    csv=CsvFile(
        "ledger",
        {
            "day": lambda entry: entry[0].transaction.day,
            "month": lambda entry: entry[0].transaction.month,
            "transaction": lambda entry: entry[0].transaction.id,
            "title": lambda entry: entry[0].title,
            "account": lambda entry: entry[1].entry.account,
            "for": lambda entry: entry[1].what,
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
