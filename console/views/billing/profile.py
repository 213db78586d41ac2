"""To whom invoices are made out, and by whom they are issued."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.member import Member, for_members
from console.shell.allowed import allowed
from console.shell.parts import show
from console.views.billing.document import percent_of
from console.views.billing.sections import tabs
from tenants.billing.invoices.queries import find_profile
from tenants.members.permissions import Permission

_PAGE: Final = "console/billing/profile.html"


@require_GET
@for_members
@allowed(Permission.READ_BILLING)
def profile(request: HttpRequest, member: Member) -> HttpResponse:
    found = find_profile(actor=member.actor)
    context = {
        "profile": found,
        "tax_percent": percent_of(found.tax),
        "tabs": tabs("billing-profile"),
    }
    return show(request, member, _PAGE, context)
