"""The pages of the area, as tabs; who may see one may see all."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, Final, ParamSpec, cast

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from console.member import Member
from tenants.errors import NotFound
from tenants.members.permissions import Permission

P = ParamSpec("P")
_View = Callable[Concatenate[HttpRequest, Member, P], HttpResponse]
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


def for_payers(view: _View[P]) -> _View[P]:
    """For views within `for_members`. What is not there is nobody's."""

    @wraps(view)
    def guarded(
        request: HttpRequest, member: Member, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        if not member.actor.may(Permission.READ_BILLING):
            raise PermissionDenied
        try:
            return view(request, member, *args, **kwargs)
        except NotFound as error:
            raise Http404 from error

    return cast(_View[P], guarded)
