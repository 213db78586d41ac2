"""The platform's price list over REST."""

import datetime

from ninja import Router

from caret.contracts.policy import Tier
from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.base_schema import Answer
from tenants.base.money import Currency
from tenants.base.permissions import Permission
from tenants.billing.plans.queries import PlanView, list_plans

router = Router(tags=["plans"])


class TierPrices(Answer):
    """Micros (millionths of the currency's unit) for a million tokens."""

    prompt: int
    cached_prompt: int
    generated: int


class Price(Answer):
    effective_on: datetime.date  # from 00:00 UTC
    seat_month_micros: int
    tiers: dict[Tier, TierPrices]


class Plan(Answer):
    slug: str
    name: str
    currency: Currency
    prices: list[Price]  # by effective_on; one is in force until the next


class Plans(Answer):
    plans: list[Plan]


@router.get(
    "",
    response=Plans,
    summary="The plans and their prices, past ones and those to come.",
    openapi_extra=open_to(Permission.READ_BILLING),
)
def list_all(request: ApiRequest) -> dict[str, list[PlanView]]:
    actor_of(request).require(Permission.READ_BILLING)
    return {"plans": list_plans()}
