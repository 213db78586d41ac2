"""The overview of the installation, for example for an operator on call.

This module also has the views of the search and the display preferences, to which every page links.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from console.layout.htmx import is_htmx_fragment
from console.layout.preferences import THEMES, preferences_of, store_preferences
from console.operator_admin.site import navigation_items, operator_required, render_operator_page
from console.sign_in.next_page import is_own_path
from tenants.base.errors import DomainError
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.operators.queries import list_directory
from tenants.fleet.pools.draining import DrainState, read_drains
from tenants.fleet.pools.scraping.installation_status import (
    InstallationStatus,
    compute_key_figures,
    read_installation_status,
)

_MIN_CHARS: Final = 2  # with a shorter search text, only pages are found
_MAX_CHARS: Final = 63  # the longest slug of a tenant
_MAX_TENANTS: Final = 5  # in the results


@require_GET
@operator_required
def overview(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    installation = read_installation_status(now=timezone.now())
    context = {
        "title": gettext("Overview"),
        "key_figures": compute_key_figures(installation),
        "drains": read_drains_if_reachable(),
        **build_installation_context(installation),
    }
    return render_operator_page(request, "overview.html", context)


def build_installation_context(installation: InstallationStatus) -> dict[str, Any]:
    """Return the values for pages with figures of gateways: the source and age of the figures."""
    window_s = installation.recent.window_s
    return {
        "installation": installation,
        "read_at": datetime.now(UTC),
        # None: the figures cover the time since each gateway's start.
        "window_minutes": None if window_s is None else max(1, round(window_s / 60)),
    }


def read_drains_if_reachable() -> DrainState | None:
    """Return the drained replicas; None if Redis is unreachable."""
    try:
        return read_drains(connect_to_redis())
    except DomainError:
        return None


@dataclass(frozen=True, slots=True)
class OperatorSearchHit:
    icon: str
    title: str
    hint: str  # more text after the title
    url: str


@require_GET
@operator_required
def search(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    """Find pages and tenants.

    Pages are found by the beginnings of the words in their titles, tenants by the beginning of
    their slug. An empty text finds all pages.
    """
    text = request.GET.get("q", "").strip()[:_MAX_CHARS]
    words = text.casefold().split()
    links = [
        OperatorSearchHit(item.icon, item.label, "", item.url)
        for item in navigation_items(request)
        if _has_words(item.label, words)
    ]
    context = {
        "title": gettext("Search"),
        "search_text": text,
        "links": links,
        "hits": _find_tenants(text) if len(text) >= _MIN_CHARS else [],
    }
    template = "_search_results.html" if is_htmx_fragment(request) else "search.html"
    return render_operator_page(request, template, context)


def _has_words(title: str, words: list[str]) -> bool:
    """Return whether each of `words` is the beginning of a word of the title."""
    title_words = title.casefold().split()
    return all(any(title_word.startswith(word) for title_word in title_words) for word in words)


def _find_tenants(text: str) -> list[OperatorSearchHit]:
    rows = list_directory(search=text.lower(), limit=_MAX_TENANTS, cursor=None).rows
    return [
        OperatorSearchHit(
            "tenant", row.name, row.slug, reverse("operators:tenant", args=[row.tenant_id])
        )
        for row in rows
    ]


@require_POST
@operator_required
def set_preferences(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    """Set the theme or the language, and redirect to the page that sent the form."""
    preferences = preferences_of(request)
    theme, language = request.POST.get("theme"), request.POST.get("language")
    if theme in THEMES:
        preferences = replace(preferences, theme=theme)
    if language in dict(settings.LANGUAGES):
        preferences = replace(preferences, language=language)
    target = request.POST.get("next", "")
    response = redirect(target if is_own_path(target) else "operators:index")
    store_preferences(response, preferences)
    return response
