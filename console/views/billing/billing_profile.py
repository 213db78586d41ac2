"""The billing profile: the recipient, the issuer and the tax of the tenant's invoices.

Members can edit only the recipient, who is called the customer here.
"""

from typing import Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.billing.invoices import percent_of
from console.views.billing.tabs import tabs
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.billing.invoices.billing_profile import COUNTRY, MAX_CHARS, change_customer
from tenants.billing.invoices.document import InvoiceParty
from tenants.billing.invoices.queries import find_billing_profile

_PAGE: Final = "console/billing/billing_profile.html"
_FORM: Final = "console/billing/edit_billing_profile.html"


class CustomerForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=MAX_CHARS)
    address = forms.CharField(
        label=_("Address"),
        help_text=_("Line by line, as on an envelope."),
        required=False,
        widget=forms.Textarea({"rows": 4}),
    )
    country = forms.RegexField(
        COUNTRY,
        label=_("Country"),
        help_text=_(
            "Two-letter country code (ISO 3166), such as DE. E-invoices (EN 16931) require "
            "a country."
        ),
        required=False,
        widget=forms.TextInput({"autocomplete": "country", "maxlength": 2}),
        error_messages={"invalid": _("Enter a two-letter country code (ISO 3166), such as DE.")},
    )
    tax_id = forms.CharField(
        label=_("Tax ID"),
        help_text=_("For example DE123456789. It appears on invoices; we do not validate it."),
        max_length=MAX_CHARS,
        required=False,
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    email = forms.EmailField(label=_("Invoice e-mail"), max_length=MAX_CHARS, required=False)

    def to_customer(self) -> InvoiceParty:
        cleaned = self.cleaned_data
        lines = [line.strip() for line in cleaned["address"].splitlines()]
        return InvoiceParty(
            name=cleaned["name"],
            address=tuple(filter(None, lines)),
            tax_id=cleaned["tax_id"],
            email=cleaned["email"],
            country=cleaned["country"],
        )


@require_GET
@member_required
@permission_required(Permission.READ_BILLING)
def profile(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    billing_profile = find_billing_profile(actor=member.actor)
    context = {
        "profile": billing_profile,
        "tax_percent": percent_of(billing_profile.tax),
        "tabs": tabs("billing-profile"),
        "may_edit": member.actor.has_permission(Permission.WRITE_BILLING),
    }
    return render_page(request, member, _PAGE, context)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_BILLING)
@step_up_required
def edit(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = CustomerForm(request.POST or None, initial=_initial_values(member))
    if request.method == "GET":
        return render_page(request, member, _FORM, {"form": form})
    if not form.is_valid() or not _change_customer(member, form):
        return render_page(request, member, _FORM, {"form": form}, status=400)
    toast(request, gettext("Billing profile saved. It applies from the next invoice."))
    return redirect("console:billing-profile")


def _initial_values(member: CurrentMember) -> dict[str, str]:
    customer = find_billing_profile(actor=member.actor).customer
    return {
        "name": customer.name,
        "address": "\n".join(customer.address),
        "tax_id": customer.tax_id,
        "email": customer.email,
        "country": customer.country,
    }


def _change_customer(member: CurrentMember, form: CustomerForm) -> bool:
    """Change the customer. Return False, with an error in the form, if a value is invalid."""
    try:
        change_customer(actor=member.actor, customer=form.to_customer(), now=timezone.now())
    except InvalidValue as error:
        form.add_error(error.field, translate_error(error))
        return False
    return True
