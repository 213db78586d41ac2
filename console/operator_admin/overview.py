"""The installation at a glance: the five figures in the order in which who is on call looks."""

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
from tenants.fleet.pools.installation_status import (
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
        "drains": known_drains(),
        **of_installation(installation),
    }
    return page(request, "overview.html", context)


def of_installation(installation: InstallationStatus) -> dict[str, Any]:
    """What each page that shows figures of gateways says of where they come from."""
    window_s = installation.recent.window_s
    return {
        "installation": installation,
        "read_at": datetime.now(UTC),
        "window_minutes": None if window_s is None else max(1, round(window_s / 60)),
    }


def known_drains() -> DrainState | None:
    """None: Redis does not say."""
    try:
        return read_drains(connect())
    except DomainError:
        return None
