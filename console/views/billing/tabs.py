"""The tabs of the billing pages. A user who may open one of the pages may open all."""

from typing import Final

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from console.layout.tabs import Tab

_TITLES: Final = {  # by URL name
    "billing": _("This month"),
    "billing-invoices": _("Invoices"),
    "billing-ledger": _("Ledger"),
    "billing-profile": _("Billing profile"),
}


def tabs(current_name: str) -> list[Tab]:
    return [
        Tab(str(title), reverse(f"console:{name}"), is_current=name == current_name)
        for name, title in _TITLES.items()
    ]
