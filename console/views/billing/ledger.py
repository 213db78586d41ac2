"""The ledger: transactions with all their entries."""

from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.error_messages import translate_error
from console.layout.htmx import render_page
from console.layout.lists.csv_response import CsvRows, collect_rows, csv_response, notes_of
from console.layout.lists.date_range_form import DateRangeForm
from console.layout.lists.pagination import page_links, wants_csv
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.billing.ledger_presenters import row_of
from console.views.billing.tabs import tabs
from tenants.base.errors import InvalidValue
from tenants.base.pagination import MAX_PAGE, Page
from tenants.base.permissions import Permission
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.queries import LedgerFilter, TransactionView, page_of_ledger

_PAGE: Final = "console/billing/ledger.html"
_PART: Final = "console/billing/_ledger.html"
_LIMIT: Final = 50
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

    def to_filter(self) -> LedgerFilter:
        cleaned: dict[str, Any] = self.cleaned_data
        account = LedgerAccountCode(cleaned["account"]) if cleaned["account"] else None
        return LedgerFilter(account=account, first=cleaned["first"], last=cleaned["last"])


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def ledger(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = LedgerFilterForm(request.GET)
    is_filtered = any(request.GET.get(name) for name in LedgerFilterForm.base_fields)
    context = {"form": form, "is_filtered": is_filtered, "tabs": tabs("billing-ledger")}
    try:
        if wants_csv(request):
            return _file(collect_rows(lambda cursor: _found(member, form, cursor, MAX_PAGE)))
        page = _found(member, form, request.GET.get("cursor") or None, _LIMIT)
    except InvalidValue as error:
        context["error"] = translate_error(error)
        return render_page(request, member, _PAGE, context, part=_PART, status=400)
    context |= {
        "rows": [row_of(each, _ACCOUNTS) for each in page.rows],
        "turning": page_links(request, page, has_file=True),
    }
    return render_page(request, member, _PAGE, context, part=_PART)


def _found(
    member: CurrentMember, form: LedgerFilterForm, cursor: str | None, limit: int
) -> Page[TransactionView]:
    """Return a page of transactions that match the form. Raises InvalidValue."""
    if not form.is_valid():
        raise InvalidValue("filter", "This cannot be filtered.")
    return page_of_ledger(actor=member.actor, limit=limit, cursor=cursor, asked=form.to_filter())


def _file(found: CsvRows[TransactionView]) -> HttpResponse:
    """Return the entries as CSV, one row each. Debits are above 0."""
    header = (
        *("day", "month", "transaction", "title", "account", "for", "quantity", "price_micros"),
        *("amount_micros", "currency", "booked_at"),
    )
    rows = [
        (
            *(booked.transaction.day, booked.transaction.month, booked.transaction.id),
            *(booked.title, side.entry.account, side.what, side.entry.quantity),
            *(side.entry.price_micros, side.entry.amount_micros),
            *(booked.transaction.currency, booked.transaction.created_at),
        )
        for booked in (row_of(each, _ACCOUNTS) for each in found.rows)
        for side in booked.sides
    ]
    return csv_response("ledger", header, rows, notes=notes_of(found))
