"""The ledger: each transaction with both of its sides."""

from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.current_member import Member, for_members
from console.error_messages import told
from console.layout.csv_response import Gathered, csv_answer, first_rows, notes_of
from console.layout.date_range_form import DaysForm
from console.layout.htmx import show
from console.layout.pagination import turning, wants_file
from console.layout.permission_required import allowed
from console.views.billing.ledger_presenters import row_of
from console.views.billing.tabs import tabs
from tenants.base.errors import Invalid
from tenants.base.pagination import MAX_PAGE, Page
from tenants.base.permissions import Permission
from tenants.billing.ledger.accounts import Account
from tenants.billing.ledger.queries import LedgerFilter, TransactionView, page_of_ledger

_PAGE: Final = "console/billing/ledger.html"
_PART: Final = "console/billing/_ledger.html"
_LIMIT: Final = 50
_ACCOUNTS: Final[dict[Account, Promise]] = {
    Account.UNBILLED: _("Used, not yet invoiced"),
    Account.RECEIVABLE: _("Invoiced"),
    Account.CREDITS: _("Credits"),
    Account.TAX: _("Tax"),
    Account.SEATS: _("Seats"),
    Account.TOKENS: _("Tokens"),
    Account.CORRECTIONS: _("Corrections"),
    Account.ROUNDING: _("Rounding"),
    Account.PROMOTIONS: _("Credits granted"),
}


class Filter(DaysForm):
    account = forms.ChoiceField(
        label=_("Account"),
        required=False,
        choices=[("", _("All")), *((code.value, name) for code, name in _ACCOUNTS.items())],
    )

    def asked(self) -> LedgerFilter:
        cleaned: dict[str, Any] = self.cleaned_data
        account = Account(cleaned["account"]) if cleaned["account"] else None
        return LedgerFilter(account=account, first=cleaned["first"], last=cleaned["last"])


@require_GET
@for_members
@allowed(Permission.READ_BILLING)
def ledger(request: HttpRequest, member: Member) -> HttpResponse:
    form = Filter(request.GET)
    is_filtered = any(request.GET.get(name) for name in Filter.base_fields)
    context = {"form": form, "is_filtered": is_filtered, "tabs": tabs("billing-ledger")}
    try:
        if wants_file(request):
            return _file(first_rows(lambda cursor: _found(member, form, cursor, MAX_PAGE)))
        page = _found(member, form, request.GET.get("cursor") or None, _LIMIT)
    except Invalid as error:
        context["error"] = told(error)
        return show(request, member, _PAGE, context, part=_PART, status=400)
    context |= {
        "rows": [row_of(each, _ACCOUNTS) for each in page.rows],
        "turning": turning(request, page, has_file=True),
    }
    return show(request, member, _PAGE, context, part=_PART)


def _found(member: Member, form: Filter, cursor: str | None, limit: int) -> Page[TransactionView]:
    """Raises Invalid."""
    if not form.is_valid():
        raise Invalid("filter", "This cannot be asked for.")
    return page_of_ledger(actor=member.actor, limit=limit, cursor=cursor, asked=form.asked())


def _file(found: Gathered[TransactionView]) -> HttpResponse:
    """A row for each side; debits are above 0."""
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
    return csv_answer("ledger", header, rows, notes=notes_of(found))
