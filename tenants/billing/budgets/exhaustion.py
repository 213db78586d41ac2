"""Decides whether a budget is used up.

A gateway refuses a completion if a hard budget has less left than the highest possible cost of the
completion (inference.gateway.rate_limits.budget_reservation). This cost depends on the price of the
model that will answer, and on the completion's token limits. So a hard budget is used up before its
last micro is spent. It is used up as soon as less is left than a completion of the cheapest model
may cost, with the longest prompt of the fast tier and MAX_GENERATED_TOKENS. Completions of more
expensive models stop earlier. Completions with a lower token limit may continue for a while.

A soft budget is used up when its whole limit is spent.
"""

from datetime import date

from caret.contracts.policy import Tier
from caret.contracts.pricing import MAX_GENERATED_TOKENS, max_cost_micros
from caret.foundation.ids import TenantId
from tenants.billing.budgets.month_spend import TenantMonthSpend
from tenants.billing.plans.price_book import PlanPrice
from tenants.models import Budget
from tenants.policy.availability.model_offers import find_answering_models


def is_exhausted(
    budget: Budget, month_spend: TenantMonthSpend, *, min_reservation_micros: int
) -> bool:
    """Return whether a budget is used up in the month of `month_spend`.

    `min_reservation_micros` is the result of `read_min_reservation` for today.
    """
    remaining_micros = month_spend.limit_of_budget(budget) - month_spend.spent_of_budget(budget)
    if not budget.is_hard:
        return remaining_micros <= 0
    # The reservation is 0 if nothing has a price. A budget with nothing left is used up even then.
    return remaining_micros < max(1, min_reservation_micros)


def read_min_reservation(tenant_id: TenantId, price: PlanPrice | None, *, on: date) -> int:
    """Return the amount that gateways reserve for a completion of the cheapest model, in micros.

    The completion has the longest prompt of the fast tier and MAX_GENERATED_TOKENS. `price` is in
    force on the day `on`; None: nothing has a price. One query if models have prices of their own,
    otherwise none.
    """
    if price is None:
        return 0
    if not price.model_prices:
        return compute_min_reservation(price, None)
    models = find_answering_models(tenant_id=tenant_id, tier=Tier.FAST, on=on)
    return compute_min_reservation(price, models)


def compute_min_reservation(price: PlanPrice, models: frozenset[str] | None) -> int:
    """Return the amount that gateways reserve for the cheapest of `models`, in micros. Pure.

    If `models` is None or empty, any model may answer, with or without a price of its own.
    """
    prices = [price.tiers[Tier.FAST], *price.model_prices.values()]
    if models:
        prices = [price.find_prices(Tier.FAST, model=model) for model in models]
    return min(
        max_cost_micros(model_price, Tier.FAST, max_tokens=MAX_GENERATED_TOKENS)
        for model_price in prices
    )
