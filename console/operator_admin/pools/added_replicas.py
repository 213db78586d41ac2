"""Adding a replica to a pool, and removing an added one.

Both need a reason and a step-up (an authenticator code). If a removal would leave the
pool empty, the replica's name must be typed too.
"""

from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from caret.contracts.added_replicas import ALLOWED_SPECULATION
from console.operator_admin import session
from console.operator_admin.site import operator_required, render_operator_page
from console.operator_admin.step_up import check_code
from console.texts.error_messages import translate_error
from tenants.base.errors import DomainError, InvalidValue, NotFound
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.added_replicas import (
    AdditionRequest,
    FleetView,
    RemovalRequest,
    add_replica,
    list_pools_emptied_by,
    read_additions,
    remove_replica,
)
from tenants.fleet.pools.draining import LastReplicaOfPool, read_drains
from tenants.fleet.pools.scraping.gateway_scraper import scrape_gateways
from tenants.fleet.pools.scraping.installation_status import (
    collect_allowed_hosts_by_pool,
    collect_replicas_by_pool,
)

_BAD_REQUEST: Final = 400
_CONFLICT: Final = 409
# Fields of the form, with the names that they have in AdditionRequest.
_FIELDS: Final = ("url", "kv_events", "speculation", "reason")


@never_cache
@require_http_methods(["GET", "POST"])
@operator_required
def add(request: HttpRequest, operator: OperatorView, pool: str) -> HttpResponse:
    if not operator.can_change:
        raise PermissionDenied
    fleet = _read_fleet()
    if pool not in fleet.replicas_by_pool:
        raise Http404
    if request.method == "GET":
        return _render_add_form(request, pool, fleet, {})
    if (code_error := check_code(request, operator)) is not None:
        return _render_add_form(request, pool, fleet, {"code": code_error}, status=_BAD_REQUEST)
    addition = AdditionRequest(pool, **{name: request.POST.get(name, "") for name in _FIELDS})
    try:
        add_replica(
            connect_to_redis(),
            operator=operator,
            addition=addition,
            fleet=fleet,
            now=timezone.now(),
        )
    except NotFound as error:
        raise Http404 from error
    except InvalidValue as error:
        return _render_add_form(
            request, pool, fleet, {error.field: translate_error(error)}, status=_BAD_REQUEST
        )
    except DomainError as error:
        return _render_add_form(
            request, pool, fleet, {"": translate_error(error)}, status=_CONFLICT
        )
    return redirect(reverse("operators:pools") + "?done=added")


@never_cache
@require_http_methods(["GET", "POST"])
@operator_required
def remove(request: HttpRequest, operator: OperatorView, pool: str, replica: str) -> HttpResponse:
    # The gateways need not know the replica: operators must also be able to remove replicas that
    # gateways reject.
    if not operator.can_change:
        raise PermissionDenied
    fleet, removal = _read_fleet(), _to_removal(request, pool, replica)
    if request.method == "GET":
        return _render_remove_form(request, removal, fleet, {})
    if (code_error := check_code(request, operator)) is not None:
        return _render_remove_form(
            request, removal, fleet, {"code": code_error}, status=_BAD_REQUEST
        )
    try:
        remove_replica(
            connect_to_redis(), operator=operator, removal=removal, fleet=fleet, now=timezone.now()
        )
    except NotFound as error:
        raise Http404 from error
    except InvalidValue as error:
        return _render_remove_form(
            request, removal, fleet, {error.field: translate_error(error)}, status=_BAD_REQUEST
        )
    except LastReplicaOfPool:
        name_error = gettext("Enter the replica's name as shown above.")
        return _render_remove_form(
            request, removal, fleet, {"confirmation": name_error}, status=_BAD_REQUEST
        )
    except DomainError as error:
        return _render_remove_form(
            request, removal, fleet, {"": translate_error(error)}, status=_CONFLICT
        )
    return redirect(reverse("operators:pools") + "?done=removed")


def _to_removal(request: HttpRequest, pool: str, replica: str) -> RemovalRequest:
    """Return the removal. Raises Http404 if no operator added this replica."""
    try:
        if (pool, replica) not in read_additions(connect_to_redis()).replicas:
            raise Http404
    except DomainError:
        pass  # Redis is unreachable. The form shows this error when it is submitted.
    return RemovalRequest(
        pool, replica, request.POST.get("reason", ""), request.POST.get("confirmation", "")
    )


def _read_fleet() -> FleetView:
    """Ask all gateways for their pools. Without Redis, no replica counts as drained."""
    scrapes = scrape_gateways()
    try:
        drained = frozenset(read_drains(connect_to_redis()).drained)
    except DomainError:
        drained = frozenset()
    return FleetView(
        collect_replicas_by_pool(scrapes), collect_allowed_hosts_by_pool(scrapes), drained
    )


def _render_add_form(
    request: HttpRequest, pool: str, fleet: FleetView, errors: dict[str, str], *, status: int = 200
) -> HttpResponse:
    """Return the page. `errors` has messages by field; "": an error of the whole form."""
    context = {
        "title": gettext("Add a replica"),
        "pool": pool,
        "allowed_hosts": fleet.allowed_hosts.get(pool, ()),
        "speculation": [
            (name, name == request.POST.get("speculation")) for name in ALLOWED_SPECULATION
        ],
        "url": request.POST.get("url", ""),
        "kv_events": request.POST.get("kv_events", ""),
        **_form_context(request, errors),
    }
    return render_operator_page(request, "pools/add.html", context, status=status)


def _render_remove_form(
    request: HttpRequest,
    removal: RemovalRequest,
    fleet: FleetView,
    errors: dict[str, str],
    *,
    status: int = 200,
) -> HttpResponse:
    """Return the page. `errors` is as in _render_add_form."""
    context = {
        "title": gettext("Remove a replica"),
        "pool": removal.pool,
        "replica": removal.replica,
        "pools_left_empty": list_pools_emptied_by(removal.pool, removal.replica, fleet),
        "confirmation": removal.confirmation,
        **_form_context(request, errors),
    }
    return render_operator_page(request, "pools/remove.html", context, status=status)


def _form_context(request: HttpRequest, errors: dict[str, str]) -> dict[str, Any]:
    return {
        "needs_code": not session.is_confirmed(request),
        "reason": request.POST.get("reason", ""),
        "message": errors.get(""),
        "errors": errors,
    }
