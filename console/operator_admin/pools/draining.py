"""Draining and undraining a replica.

Both need a reason and a step-up. If a pool would lose its last replica, the replica's name must be
typed too.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from console.operator_admin import session
from console.operator_admin.site import operator_required, render_operator_page
from console.operator_admin.step_up import check_code
from console.texts.error_messages import translate_error
from tenants.base.errors import Conflict, DomainError, InvalidValue, NotFound
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.draining import (
    DrainRequest,
    LastReplicaOfPool,
    Members,
    find_emptied_pools,
    read_drains,
    set_drain,
)
from tenants.fleet.pools.scraping.gateway_scraper import scrape_gateways
from tenants.fleet.pools.scraping.installation_status import collect_replicas_by_pool

_BAD_REQUEST: Final = 400
_CONFLICT: Final = 409


@dataclass(frozen=True, slots=True)
class _DrainStep:
    """The replica to drain or undrain."""

    replica: str  # host:port
    should_drain: bool  # False: undrain it
    members: Members  # the replicas of each pool; empty to undrain, which does not need them


@never_cache
@require_http_methods(["GET", "POST"])
@operator_required
def drain(request: HttpRequest, operator: OperatorView, replica: str) -> HttpResponse:
    members = collect_replicas_by_pool(scrape_gateways())
    if replica not in {name for names in members.values() for name in names}:
        raise Http404
    return _apply_step(request, operator, _DrainStep(replica, should_drain=True, members=members))


@never_cache
@require_http_methods(["GET", "POST"])
@operator_required
def undrain(request: HttpRequest, operator: OperatorView, replica: str) -> HttpResponse:
    # The gateways are not asked: operators must also be able to undrain a replica that no gateway
    # reports.
    return _apply_step(request, operator, _DrainStep(replica, should_drain=False, members={}))


def _apply_step(request: HttpRequest, operator: OperatorView, step: _DrainStep) -> HttpResponse:
    if not operator.can_change:
        raise PermissionDenied
    if request.method == "GET":
        return _show_form(request, step, {})
    code_error = check_code(request, operator)
    if code_error is not None:
        return _show_form(request, step, {"code": code_error}, status=_BAD_REQUEST)
    drain_request = DrainRequest(
        replica=step.replica,
        is_drained=step.should_drain,
        reason=request.POST.get("reason", ""),
        confirmation=request.POST.get("confirmation", ""),
    )
    try:
        set_drain(
            connect_to_redis(),
            operator=operator,
            drain_request=drain_request,
            members=step.members,
            now=timezone.now(),
        )
    except DomainError as error:
        return _show_error(request, step, error)
    return redirect(
        reverse("operators:pools") + f"?done={'drained' if step.should_drain else 'undrained'}"
    )


def _show_error(request: HttpRequest, step: _DrainStep, error: DomainError) -> HttpResponse:
    if isinstance(error, NotFound):
        raise Http404 from error
    if isinstance(error, InvalidValue):
        return _show_form(request, step, {error.field: translate_error(error)}, status=_BAD_REQUEST)
    if isinstance(error, LastReplicaOfPool):
        name_error = gettext("Enter the replica's name as shown above.")
        return _show_form(request, step, {"confirmation": name_error}, status=_BAD_REQUEST)
    assert isinstance(error, Conflict)
    return _show_form(request, step, {"": translate_error(error)}, status=_CONFLICT)


def _show_form(
    request: HttpRequest, step: _DrainStep, errors: dict[str, str], *, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {
        "title": gettext("Drain a replica") if step.should_drain else gettext("Undrain a replica"),
        "replica": step.replica,
        "should_drain": step.should_drain,
        "pools": sorted(pool for pool, names in step.members.items() if step.replica in names),
        "pools_left_empty": _find_emptied(step),
        "needs_code": not session.is_confirmed(request),
        "reason": request.POST.get("reason", ""),
        "confirmation": request.POST.get("confirmation", ""),
        "message": errors.get(""),
        "errors": errors,
    }
    return render_operator_page(request, "pools/drain.html", context, status=status)


def _find_emptied(step: _DrainStep) -> list[str]:
    """Return the pools that would have no replica left."""
    if not step.should_drain:
        return []
    try:
        drained = read_drains(connect_to_redis()).drained
    except DomainError:
        drained = {}
    return find_emptied_pools(step.replica, drained, step.members)
