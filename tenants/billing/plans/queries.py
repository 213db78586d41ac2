"""Queries of plans, prices and subscriptions."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

import msgspec

from caret.contracts.policy import Tier
from caret.contracts.pricing import TierPrices
from caret.foundation.ids import TenantId
from tenants.base.money import Currency
from tenants.billing.plans.price_book import PlanPrice, PriceBook, SubscriptionPrices
from tenants.models import BillingState, Plan, PriceVersion, Subscription


@dataclass(frozen=True, slots=True)
class PlanView:
    slug: str
    name: str
    currency: Currency
    prices: tuple[PlanPrice, ...]  # by effective_on


def list_plans() -> list[PlanView]:
    """Return all plans of the platform by name. Two queries."""
    plans = list(Plan.objects.order_by("name", "slug"))
    prices = _read_prices(plan.id for plan in plans)
    return [
        PlanView(plan.slug, plan.name, Currency(plan.currency), prices[plan.id]) for plan in plans
    ]


def read_price_book(tenant_id: TenantId) -> PriceBook:
    """Read a tenant's prices. Must run inside the tenant's scope. Two queries."""
    subscriptions = Subscription.objects.filter(tenant_id=tenant_id).select_related("plan")
    rows = list(subscriptions.order_by("starts_on"))
    prices = _read_prices(row.plan_id for row in rows)
    return PriceBook(
        [SubscriptionPrices(row.starts_on, row.plan.name, prices[row.plan_id]) for row in rows]
    )


def find_currency(tenant_id: TenantId) -> Currency | None:
    """Return the ledger's currency; None: the tenant has no plan.

    Must run inside the tenant's scope.
    """
    currencies = BillingState.objects.filter(tenant_id=tenant_id).values_list("currency", flat=True)
    code = currencies.first()
    return None if code is None else Currency(code)


def _read_prices(plan_ids: Iterable[UUID]) -> dict[UUID, tuple[PlanPrice, ...]]:
    """Return prices by plan, in order of effective_on. A plan without prices has an empty tuple."""
    prices_by_plan: defaultdict[UUID, list[PlanPrice]] = defaultdict(list)
    rows = PriceVersion.objects.filter(plan_id__in=set(plan_ids)).order_by("effective_on")
    for row in rows:
        prices_by_plan[row.plan_id].append(_to_price(row))
    return defaultdict(
        tuple, {plan_id: tuple(prices) for plan_id, prices in prices_by_plan.items()}
    )


def _to_price(row: PriceVersion) -> PlanPrice:
    return PlanPrice(
        effective_on=row.effective_on,
        seat_month_micros=row.seat_month_micros,
        tiers=msgspec.convert(row.tiers, dict[Tier, TierPrices]),
        model_prices=msgspec.convert(row.model_prices, dict[str, TierPrices]),
    )
