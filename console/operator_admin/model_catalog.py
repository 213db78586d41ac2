"""The model catalogue, and the pools that are assigned to tenants.

Each change needs a step-up: the operator enters an authenticator code.
"""

from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from caret.contracts.language_ids import LANGUAGES
from caret.contracts.policy import ANY_LANGUAGE, Tier
from console.operator_admin.site import operator_required
from console.operator_admin.step_up import Change, ChangePage
from console.sign_in.current_member import client_address
from tenants.base.errors import InvalidValue
from tenants.billing.plans.queries import PlanView, list_plans
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
from tenants.fleet.pools.model_catalog import (
    CatalogEntry,
    NewModel,
    list_catalog,
    publish_model,
    withdraw_model,
)
from tenants.security.authorization.actor import Actor

_MAX_POSITION_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class CatalogRow:
    entry: CatalogEntry
    # Slugs of the plans whose latest prices have their own price for the model, as text. "": none.
    priced_in: str


@require_GET
@operator_required
def models(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    return _PAGE.render(request)


@never_cache
@require_POST
@operator_required
def change(request: HttpRequest, operator: OperatorView, action: str) -> HttpResponse:
    """Publish or withdraw a model, or assign a pool to a tenant or remove the assignment."""
    return _PAGE.change(request, operator, action)


def _page_context(request: HttpRequest) -> dict[str, Any]:
    known_pools, plans = read_known_pools(), list_plans()
    return {
        "catalog": [_to_row(entry, plans) for entry in list_catalog()],
        "assignments": list_all_assignments(),
        "pools": sorted(known_pools.values(), key=lambda pool: (pool.tier, pool.name)),
        "assignable": [
            pool for pool in known_pools.values() if pool.sharing is not PoolSharing.DEDICATED
        ],
        "plans": plans,
        "languages": sorted(LANGUAGES),
        "any_language": ANY_LANGUAGE,
        "chosen_pools": request.POST.getlist("pools"),
        "chosen_plans": request.POST.getlist("plans"),
    }


def _to_row(entry: CatalogEntry, plans: list[PlanView]) -> CatalogRow:
    priced_in = [
        plan.slug for plan in plans if plan.prices and entry.name in plan.prices[-1].model_prices
    ]
    return CatalogRow(entry, ", ".join(priced_in))


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
        known_pools=read_known_pools(),
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
        known_pools=read_known_pools(),
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
    """Return the operator as the actor for the tenant that the form names. Raises NotFound."""
    return build_operator_actor(
        operator,
        tenant_id=find_by_slug(request.POST.get("tenant", "").strip()).tenant_id,
        address=client_address(request),
        request_id=str(uuid4()),  # the same in all audit entries of the request
    )


def _read_tier(request: HttpRequest) -> Tier:
    """Return the tier that the form names. Raises InvalidValue."""
    try:
        return Tier(request.POST.get("tier", ""))
    except ValueError as error:
        raise InvalidValue("tier", "Choose one of these tiers.") from error


def _read_position(text: str) -> int | None:
    """Return the position in the list of the tier; None if empty. Raises InvalidValue."""
    text = text.strip()
    if not text:
        return None
    # Only ASCII digits: isdigit alone accepts "²", for which int fails.
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_POSITION_DIGITS):
        raise InvalidValue("position", "Enter a whole number, or leave empty.")
    return int(text)


_PAGE: Final = ChangePage(
    title=_("Models"),
    template="models.html",
    url_name="models",
    changes={
        "publish": Change(_publish, _("Model published. Gateways apply this within a second.")),
        "withdraw": Change(_withdraw, _("Model withdrawn. Gateways apply this within a second.")),
        "assign": Change(_assign, _("Pool assigned. Gateways apply this within a second.")),
        "unassign": Change(
            _unassign, _("Assignment removed. Gateways apply this within a second.")
        ),
    },
    context=_page_context,
)
