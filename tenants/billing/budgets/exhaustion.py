"""The rule by which a budget is used up. It is the rule that gateways apply.

A gateway refuses a completion if a hard budget has less left than the completion may cost, at the
price of the model that will answer (inference.gateway.rate_limits.budget_reservation). A hard
budget is therefore used up before its last micro is spent: as soon as not even the cheapest model
can answer. Completions of more expensive models stop earlier.
"""

from datetime import date

from caret.contracts.policy import Tier
from caret.contracts.pricing import MAX_GENERATED_TOKENS, max_cost_micros
from caret.foundation.ids import TenantId
from tenants.billing.budgets.month_spend import TenantMonthSpend
from tenants.billing.plans.price_book import PlanPrice
from tenants.models import Budget
from tenants.policy.availability.model_offers import find_answering_models


def is_exhausted(budget: Budget, month: TenantMonthSpend, *, min_reservation_micros: int) -> bool:
    """Return whether a budget is used up in this month.

    `min_reservation_micros` is today's, from `read_min_reservation`.
    """
    remaining_micros = month.limit_of_budget(budget) - month.spent_of_budget(budget)
    if not budget.is_hard:
        return remaining_micros <= 0
    return remaining_micros < max(1, min_reservation_micros)


def read_min_reservation(tenant_id: TenantId, price: PlanPrice | None, *, on: date) -> int:
    """Return the least that gateways reserve for a completion of the fast tier, in micros.

    `price` is in force on the day; None: nothing has a price. One query if models have prices of
    their own, otherwise none.
    """
    if price is None:
        return 0
    if not price.model_prices:
        return compute_min_reservation(price, None)
    models = find_answering_models(tenant_id=tenant_id, tier=Tier.FAST, on=on)
    return compute_min_reservation(price, models)


def compute_min_reservation(price: PlanPrice, models: frozenset[str] | None) -> int:
    """Return the least that gateways reserve if one of `models` answers. Pure.

    None or no models: any model of the price may answer.
    """
    prices = [price.tiers[Tier.FAST], *price.model_prices.values()]
    if models:
        prices = [price.find_prices(Tier.FAST, model=model) for model in models]
    return min(
        max_cost_micros(model_price, Tier.FAST, max_tokens=MAX_GENERATED_TOKENS)
        for model_price in prices
    )
