"""The plan and the price that are in force for a tenant on a day. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar

from caret.contracts.policy import Tier
from caret.contracts.pricing import TierPrices, TokenPrices
from caret.foundation.clock import to_unix_ms
from tenants.base.billing_periods import start_of_day

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class PlanPrice:
    effective_on: date  # from 00:00 UTC
    seat_month_micros: int  # for one seat and one month
    tiers: dict[Tier, TierPrices]  # has all tiers
    # Prices of models that do not have their tier's price, by the name that their engines serve.
    model_prices: dict[str, TierPrices] = field(default_factory=dict)

    def find_prices(self, tier: Tier, *, model: str) -> TierPrices:
        return self.model_prices.get(model) or self.tiers[tier]


@dataclass(frozen=True, slots=True)
class SubscriptionPrices:
    """A subscription of a tenant, with the prices of its plan."""

    starts_on: date  # in force until the next subscription starts
    plan_name: str
    prices: tuple[PlanPrice, ...]  # by effective_on


@dataclass(frozen=True, slots=True)
class PriceBook:
    plans: Sequence[SubscriptionPrices]  # by starts_on

    def price_on(self, day: date) -> PlanPrice | None:
        """Return the price on a day; None: the tenant had no plan, or the plan had no price."""
        plan = _find_latest([plan for plan in self.plans if plan.starts_on <= day])
        if plan is None:
            return None
        return _find_latest([price for price in plan.prices if price.effective_on <= day])

    def plan_on(self, day: date) -> SubscriptionPrices | None:
        return _find_latest([plan for plan in self.plans if plan.starts_on <= day])

    def next_change_after(self, day: date) -> date | None:
        """Return the next day on which another plan or another price of the plan begins."""
        changes = {plan.starts_on for plan in self.plans}
        changes |= {price.effective_on for plan in self.plans for price in plan.prices}
        later = (change for change in sorted(changes) if change > day)
        before = (self.plan_on(day), self.price_on(day))
        return next(
            (
                day_of_change
                for day_of_change in later
                if (self.plan_on(day_of_change), self.price_on(day_of_change)) != before
            ),
            None,
        )

    def list_prices_from(self, day: date) -> tuple[TokenPrices, ...]:
        """Return the price of `day` and the known later prices, in order, for the data plane."""
        changes = {plan.starts_on for plan in self.plans}
        changes |= {price.effective_on for plan in self.plans for price in plan.prices}
        days = [day, *sorted(change for change in changes if change > day)]
        return tuple(
            TokenPrices(
                effective_from_ms=to_unix_ms(start_of_day(first_day)),
                tiers=price.tiers,
                model_prices=price.model_prices,
            )
            for first_day in days
            if (price := self.price_on(first_day)) is not None
        )


def _find_latest(items: list[_Found]) -> _Found | None:
    """Return the last item of a list in ascending order."""
    return items[-1] if items else None
