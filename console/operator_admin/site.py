"""The operators' site: Django's admin with unfold's theme, without registered models.

Django's own admin pages have no URLs here (see console/operator_admin/urls.py). They would read and
write tables without asking the operator for a reason, without an entry in the audit log, and
outside of a tenant's scope.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy
from unfold.sites import UnfoldAdminSite

from console.layout.preferences import THEMES
from console.operator_admin.session import operator_of
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.scraping.gateway_scraper import list_gateway_urls

P = ParamSpec("P")


class OperatorSite(UnfoldAdminSite):  # type: ignore[misc]  # unfold has no types
    def has_permission(self, request: HttpRequest) -> bool:
        return operator_of(request) is not None

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {
            **super().each_context(request),
            "site_title": gettext("Caret operators"),
            "operator": operator_of(request),
        }


@dataclass(frozen=True, slots=True)
class AdminNavigationItem:
    label: str
    url: str
    icon: str
    is_current: bool


# For each item: label, URL name of its page, and URL names of further pages that belong to it.
_NAVIGATION: Final = (
    (gettext_lazy("Overview"), "index", frozenset[str]()),
    (gettext_lazy("Pools"), "pools", frozenset({"drain", "undrain", "add", "remove"})),
    (gettext_lazy("Models"), "models", frozenset({"change_model"})),
    (gettext_lazy("Experiments"), "experiments", frozenset({"change_experiment"})),
    (gettext_lazy("Evaluations"), "evaluations", frozenset({"evaluation"})),
    (gettext_lazy("Public code"), "public_code", frozenset({"change_public_code"})),
    (gettext_lazy("Slow requests"), "slow_requests", frozenset[str]()),
    (gettext_lazy("Capacity"), "capacity", frozenset[str]()),
    (gettext_lazy("Cost"), "cost", frozenset[str]()),
    (
        gettext_lazy("Tenants"),
        "tenants",
        frozenset({"tenant", "new_tenant", "reason", "change", "invite_owner"}),
    ),
)
# By URL name.
_ICONS: Final = {
    "index": "overview",
    "pools": "cache",
    "models": "fast",
    "experiments": "experiments",
    "evaluations": "done",
    "public_code": "code",
    "slow_requests": "clock",
    "capacity": "gauge",
    "cost": "billing",
    "tenants": "tenant",
}
operator_site: Final = OperatorSite(name="operators")


def render_operator_page(
    request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    common_context = {
        **operator_site.each_context(request),
        "navigation": navigation_items(request),
        "themes": THEMES.items(),
        "has_gateway_metrics": bool(list_gateway_urls()),
    }
    return render(request, f"operators/{template}", {**common_context, **context}, status=status)


def navigation_items(request: HttpRequest) -> list[AdminNavigationItem]:
    match = request.resolver_match
    current = "" if match is None else match.url_name
    return [
        AdminNavigationItem(
            str(label),
            reverse(f"operators:{name}"),
            _ICONS[name],
            current == name or current in subpages,
        )
        for label, name, subpages in _NAVIGATION
    ]


def operator_required(
    view: Callable[Concatenate[HttpRequest, OperatorView, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Guard a view, and pass the signed-in operator to it as its second argument.

    If no operator is signed in, redirect to the sign-in page.
    """

    @wraps(view)
    def wrapper(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        operator = operator_of(request)
        assert operator is not None  # checked by admin_view, which calls has_permission
        return view(request, operator, *args, **kwargs)

    return cast(
        Callable[Concatenate[HttpRequest, P], HttpResponse], operator_site.admin_view(wrapper)
    )
