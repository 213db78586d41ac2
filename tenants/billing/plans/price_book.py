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
    # Prices by model, by the name that the engines serve. Models without an entry have the price of
    # their tier.
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
    """All subscriptions of a tenant. One is in force on a day: the latest that has started."""

    subscriptions: Sequence[SubscriptionPrices]  # by starts_on

    def price_on(self, day: date) -> PlanPrice | None:
        """Return the price on a day; None: the tenant had no plan, or the plan had no price."""
        subscription = self.subscription_on(day)
        if subscription is None:
            return None
        return _find_latest([price for price in subscription.prices if price.effective_on <= day])

    def subscription_on(self, day: date) -> SubscriptionPrices | None:
        return _find_latest([row for row in self.subscriptions if row.starts_on <= day])

    def next_change_after(self, day: date) -> date | None:
        """Return the next day with another subscription or price; None: no change is known.

        A new subscription counts as a change, even if it is to the same plan.
        """
        before = (self.subscription_on(day), self.price_on(day))
        for start_day in self._list_start_days_after(day):
            if (self.subscription_on(start_day), self.price_on(start_day)) != before:
                return start_day
        return None

    def list_prices_from(self, day: date) -> tuple[TokenPrices, ...]:
        """Return the price of `day` and the known later prices, in order, for the data plane."""
        days = [day, *self._list_start_days_after(day)]
        return tuple(
            TokenPrices(
                effective_from_ms=to_unix_ms(start_of_day(first_day)),
                tiers=price.tiers,
                model_prices=price.model_prices,
            )
            for first_day in days
            if (price := self.price_on(first_day)) is not None
        )

    def _list_start_days_after(self, day: date) -> list[date]:
        """Return the later days on which a subscription or a price of any of the plans starts.

        The price in force may stay the same on such a day: a plan can get a new price before its
        subscription starts, or after it has ended.
        """
        days = {row.starts_on for row in self.subscriptions}
        days |= {price.effective_on for row in self.subscriptions for price in row.prices}
        return sorted(start_day for start_day in days if start_day > day)


def _find_latest(items: list[_Found]) -> _Found | None:
    """Return the last item of a list in ascending order; None: the list is empty."""
    return items[-1] if items else None
