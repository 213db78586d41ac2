"""Draining and undraining a replica.

Both need a reason and a step-up (an authenticator code). If a pool would lose its last
replica, the replica's name must be typed too.
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
    ReplicasByPool,
    find_emptied_pools,
    read_drains,
    set_drain,
)
from tenants.fleet.pools.scraping.gateway_scraper import scrape_gateways
from tenants.fleet.pools.scraping.installation_status import collect_replicas_by_pool

_BAD_REQUEST: Final = 400
_CONFLICT: Final = 409


@dataclass(frozen=True, slots=True)
class _DrainAction:
    """Draining or undraining a replica."""

    replica: str  # host:port
    should_drain: bool  # False: undrain it
    replicas_by_pool: ReplicasByPool  # empty to undrain, which does not need them


@never_cache
@require_http_methods(["GET", "POST"])
@operator_required
def drain(request: HttpRequest, operator: OperatorView, replica: str) -> HttpResponse:
    replicas_by_pool = collect_replicas_by_pool(scrape_gateways())
    if replica not in {name for names in replicas_by_pool.values() for name in names}:
        raise Http404
    return _apply_action(
        request,
        operator,
        _DrainAction(replica, should_drain=True, replicas_by_pool=replicas_by_pool),
    )


@never_cache
@require_http_methods(["GET", "POST"])
@operator_required
def undrain(request: HttpRequest, operator: OperatorView, replica: str) -> HttpResponse:
    # The gateways are not asked: operators must also be able to undrain a replica that no gateway
    # reports.
    return _apply_action(
        request, operator, _DrainAction(replica, should_drain=False, replicas_by_pool={})
    )


def _apply_action(
    request: HttpRequest, operator: OperatorView, action: _DrainAction
) -> HttpResponse:
    if not operator.can_change:
        raise PermissionDenied
    if request.method == "GET":
        return _show_form(request, action, {})
    code_error = check_code(request, operator)
    if code_error is not None:
        return _show_form(request, action, {"code": code_error}, status=_BAD_REQUEST)
    drain_request = DrainRequest(
        replica=action.replica,
        is_drained=action.should_drain,
        reason=request.POST.get("reason", ""),
        confirmation=request.POST.get("confirmation", ""),
    )
    try:
        set_drain(
            connect_to_redis(),
            operator=operator,
            drain_request=drain_request,
            replicas_by_pool=action.replicas_by_pool,
            now=timezone.now(),
        )
    except DomainError as error:
        return _show_error(request, action, error)
    return redirect(
        reverse("operators:pools") + f"?done={'drained' if action.should_drain else 'undrained'}"
    )


def _show_error(request: HttpRequest, action: _DrainAction, error: DomainError) -> HttpResponse:
    if isinstance(error, NotFound):
        raise Http404 from error
    if isinstance(error, InvalidValue):
        return _show_form(
            request, action, {error.field: translate_error(error)}, status=_BAD_REQUEST
        )
    if isinstance(error, LastReplicaOfPool):
        name_error = gettext("Enter the replica's name as shown above.")
        return _show_form(request, action, {"confirmation": name_error}, status=_BAD_REQUEST)
    assert isinstance(error, Conflict)  # not Forbidden: _apply_action has checked the role
    return _show_form(request, action, {"": translate_error(error)}, status=_CONFLICT)


def _show_form(
    request: HttpRequest, action: _DrainAction, errors: dict[str, str], *, status: int = 200
) -> HttpResponse:
    """Return the page. `errors` has messages by field; "": an error of the whole form."""
    context: dict[str, Any] = {
        "title": gettext("Drain a replica")
        if action.should_drain
        else gettext("Undrain a replica"),
        "replica": action.replica,
        "should_drain": action.should_drain,
        "pools": sorted(
            pool for pool, names in action.replicas_by_pool.items() if action.replica in names
        ),
        "pools_left_empty": _list_emptied_pools(action),
        "needs_code": not session.is_confirmed(request),
        "reason": request.POST.get("reason", ""),
        "confirmation": request.POST.get("confirmation", ""),
        "message": errors.get(""),
        "errors": errors,
    }
    return render_operator_page(request, "pools/drain.html", context, status=status)


def _list_emptied_pools(action: _DrainAction) -> list[str]:
    """Return the pools that would have no replica left."""
    if not action.should_drain:
        return []
    try:
        drained = read_drains(connect_to_redis()).drained
    except DomainError:  # Redis is unreachable, so no replica counts as drained
        drained = {}
    return find_emptied_pools(action.replica, drained, action.replicas_by_pool)
