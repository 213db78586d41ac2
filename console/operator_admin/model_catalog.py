"""The model catalogue, and the pools that are assigned to tenants.

Each change needs a code of the operator's authenticator app.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from caret.contracts.language_ids import LANGUAGES
from caret.contracts.policy import ANY_LANGUAGE, Tier
from console.operator_admin import session
from console.operator_admin.site import operator_required, render_operator_page
from console.operator_admin.step_up import check_code
from console.sign_in.current_member import client_address
from console.texts.error_messages import translate_error
from tenants.base.errors import DomainError, InvalidValue
from tenants.billing.plans.queries import list_plans
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.operators.operations import build_operator_actor
from tenants.fleet.operators.queries import find_by_slug
from tenants.fleet.pools.assignments import (
    NewAssignment,
    PoolSharing,
    assign_pool,
    list_all_assignments,
    read_known_pools,
    unassign_pool,
)
from tenants.fleet.pools.model_catalog import NewModel, list_catalog, publish_model, withdraw_model
from tenants.security.authorization.actor import Actor

_DONE: Final = MappingProxyType(
    {
        "publish": _("Model published. Gateways follow within a second."),
        "withdraw": _("Model withdrawn. Gateways follow within a second."),
        "assign": _("Pool assigned. Gateways follow within a second."),
        "unassign": _("Assignment removed. Gateways follow within a second."),
    }
)
_BAD_REQUEST: Final = 400


@require_GET
@operator_required
def models(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    return _render_page(request)


@never_cache
@require_POST
@operator_required
def change(request: HttpRequest, operator: OperatorView, action: str) -> HttpResponse:
    """Apply a change of the page's forms."""
    apply = _CHANGES.get(action)
    if apply is None:
        raise Http404
    if not operator.can_change:
        raise PermissionDenied
    if (code_error := check_code(request, operator)) is not None:
        return _render_page(request, code_error, status=_BAD_REQUEST)
    try:
        apply(request, operator)
    except DomainError as error:
        return _render_page(request, translate_error(error), status=_BAD_REQUEST)
    return redirect(reverse("operators:models") + f"?done={action}")


def _render_page(request: HttpRequest, error: str = "", *, status: int = 200) -> HttpResponse:
    known_pools = read_known_pools()
    context: dict[str, Any] = {
        "title": _("Models"),
        "done": _DONE.get(request.GET.get("done", "")),
        "error": error,
        "catalog": list_catalog(),
        "assignments": list_all_assignments(),
        "pools": sorted(known_pools.values(), key=lambda pool: (pool.tier, pool.name)),
        "assignable": [
            pool for pool in known_pools.values() if pool.sharing is not PoolSharing.DEDICATED
        ],
        "plans": list_plans(),
        "languages": sorted(LANGUAGES),
        "any_language": ANY_LANGUAGE,
        "needs_code": not session.is_confirmed(request),
        "form_data": request.POST,
        "chosen_pools": request.POST.getlist("pools"),
        "chosen_plans": request.POST.getlist("plans"),
    }
    return render_operator_page(request, "models.html", context, status=status)


def _publish(request: HttpRequest, operator: OperatorView) -> None:
    form = request.POST
    publish_model(
        operator=operator.handle,
        model=NewModel(
            title=form.get("title", ""),
            pools=tuple(form.getlist("pools")),
            plans=tuple(form.getlist("plans")),
            position=_read_position(form.get("position", "")),
        ),
        known=read_known_pools(),
        now=timezone.now(),
    )


def _withdraw(request: HttpRequest, operator: OperatorView) -> None:
    withdraw_model(
        operator=operator.handle,
        name=request.POST.get("name", ""),
        tier=_read_tier(request),
        now=timezone.now(),
    )


def _assign(request: HttpRequest, operator: OperatorView) -> None:
    form = request.POST
    assign_pool(
        actor=_operator_as_actor(request, operator),
        assignment=NewAssignment(
            pool=form.get("pool", ""),
            language=form.get("language", "").strip().lower() or ANY_LANGUAGE,
            is_dedicated="is_dedicated" in form,
        ),
        known=read_known_pools(),
        reason=form.get("reason", ""),
        now=timezone.now(),
    )


def _unassign(request: HttpRequest, operator: OperatorView) -> None:
    unassign_pool(
        actor=_operator_as_actor(request, operator),
        tier=_read_tier(request),
        language=request.POST.get("language", ""),
        reason=request.POST.get("reason", ""),
        now=timezone.now(),
    )


def _operator_as_actor(request: HttpRequest, operator: OperatorView) -> Actor:
    """Return the actor for the tenant that the form names. Raises NotFound."""
    return build_operator_actor(
        operator,
        tenant_id=find_by_slug(request.POST.get("tenant", "").strip()).tenant_id,
        address=client_address(request),
        request_id=str(uuid4()),
    )


def _read_tier(request: HttpRequest) -> Tier:
    """Return the tier. Raises InvalidValue."""
    try:
        return Tier(request.POST.get("tier", ""))
    except ValueError as error:
        raise InvalidValue("tier", "Choose one of these tiers.") from error


def _read_position(text: str) -> int | None:
    """Return the position; None if empty. Raises InvalidValue."""
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise InvalidValue("position", "Enter a whole number, or leave empty.")
    return int(text)


_CHANGES: Final[dict[str, Callable[[HttpRequest, OperatorView], None]]] = {
    "publish": _publish,
    "withdraw": _withdraw,
    "assign": _assign,
    "unassign": _unassign,
}
