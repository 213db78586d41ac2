"""The price list of the platform over REST."""

import datetime

from ninja import Router

from caret.contracts.policy import Tier
from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import ResponseSchema
from tenants.base.money import Currency
from tenants.base.permissions import Permission
from tenants.billing.plans.queries import PlanView, list_plans

router = Router(tags=["plans"])


class TierPricesResponse(ResponseSchema):
    """Prices in micros (millionths of the currency unit) for a million tokens."""

    prompt: int
    cached_prompt: int
    generated: int


class PlanPriceResponse(ResponseSchema):
    effective_on: datetime.date  # from 00:00 UTC
    seat_month_micros: int  # price of a seat for a month
    tiers: dict[Tier, TierPricesResponse]
    # By model name, for models with other prices than their tier.
    model_prices: dict[str, TierPricesResponse]


class PlanResponse(ResponseSchema):
    slug: str
    name: str
    currency: Currency
    prices: list[PlanPriceResponse]  # sorted by effective_on; each is valid until the next


class PlansResponse(ResponseSchema):
    plans: list[PlanResponse]


@router.get(
    "",
    response=PlansResponse,
    summary="List plans with their past, current and future prices.",
    openapi_extra=document_permissions(Permission.READ_BILLING),
)
def list_all(request: AuthenticatedRequest) -> dict[str, list[PlanView]]:
    actor_of(request).require(Permission.READ_BILLING)
    return {"plans": list_plans()}
