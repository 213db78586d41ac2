"""The pages of the area, as tabs; who may see one may see all."""

from dataclasses import dataclass
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

_SECTIONS: Final = {
    "billing": _("This month"),
    "billing-invoices": _("Invoices"),
    "billing-ledger": _("Ledger"),
    "billing-profile": _("Billing profile"),
}


@dataclass(frozen=True, slots=True)
class Tab:
    url: str
    title: str
    is_here: bool


def tabs(here: str) -> list[Tab]:
    return [
        Tab(reverse(f"console:{name}"), str(title), name == here)
        for name, title in _SECTIONS.items()
    ]
