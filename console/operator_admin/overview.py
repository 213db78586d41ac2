"""The state of the installation: five figures in the order of an on-call check."""

from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from console.operator_admin.site import operator_required, page
from tenants.base.errors import DomainError
from tenants.base.redis_connection import connect
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.draining import DrainState, read_drains
from tenants.fleet.pools.scraping.installation_status import (
    InstallationStatus,
    key_figures,
    read_installation,
)


@require_GET
@operator_required
def overview(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    installation = read_installation(now=timezone.now())
    context = {
        "title": "Overview",
        "on_call": key_figures(installation),
        "drains": read_drains_if_reachable(),
        **installation_context(installation),
    }
    return page(request, "overview.html", context)


def installation_context(installation: InstallationStatus) -> dict[str, Any]:
    """Return the values that all pages with gateways' figures need: their source and age."""
    window_s = installation.recent.window_s
    return {
        "installation": installation,
        "read_at": datetime.now(UTC),
        "window_minutes": None if window_s is None else max(1, round(window_s / 60)),
    }


def read_drains_if_reachable() -> DrainState | None:
    """Return the drains; None if Redis is unreachable."""
    try:
        return read_drains(connect())
    except DomainError:
        return None
