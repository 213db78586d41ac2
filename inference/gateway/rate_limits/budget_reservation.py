"""Spending: what hard budgets of the tenant, its teams and its users leave of a UTC month.

A request reserves the most that it may cost with every budget that it falls under, all or none, and
is settled with what it did cost: what was let through at once never adds up to more than a budget.
Money is micros by the snapshot's prices; control plane and gateway count alike (caret.contracts).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NoReturn

from caret.contracts.policy import Mode
from caret.contracts.pricing import (
    KEEP_SPEND_S,
    HardBudget,
    TierPrices,
    billable_tokens,
    cost_micros,
    max_cost_micros,
    prices_at,
    spend_key,
)
from caret.contracts.usage import FinishReason
from caret.foundation.ids import TenantId
from inference.completion.request import CompletionRequest, Principal
from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionDropped, TooManyRequests
from inference.gateway.rate_limits.leased_bucket import BucketSpec
from inference.gateway.rate_limits.leases import SpendRequest

KIND: Final = "spend"
# A hundredth of a budget is what a gateway holds beyond its requests' reservations, and what it
# lets through while Redis is away.
_MAX_LEASED_SHARE: Final = 100
_MAX_RULES: Final = 20_000
_PAYMENT_REQUIRED: Final = 402  # nothing that a client tries again by itself


@dataclass(frozen=True, slots=True)
class BudgetReservation:
    spend_requests: Sequence[SpendRequest]
    prices: TierPrices | None  # None: nothing is reserved
    is_warm_up: bool

    def compute_cost(self, account: RequestTrace, *, has_failed: bool) -> int:
        """Micros, as the ledger will have them; a warm-up is no completion and costs nothing."""
        if self.prices is None or has_failed or self.is_warm_up:
            return 0
        tokens = billable_tokens(
            prompt=account.prompt_tokens,
            cached=account.cached_tokens,
            generated=account.generated_tokens,
        )
        return cost_micros(self.prices, tokens)


_NOTHING: Final = BudgetReservation((), None, is_warm_up=False)


def reserve_budget(
    principal: Principal, request: CompletionRequest, *, now_ms: int
) -> BudgetReservation:
    """What is to be taken before the request may go on. All budgets of the principal's snapshot
    concern him: it comes as it is for him (`budgets`)."""
    spending = principal.snapshot.spending
    if not spending.budgets:
        return _NOTHING
    prices = prices_at(spending, now_ms)
    if prices is None:
        return _NOTHING
    of_tier = prices.tiers[request.tier]
    micros = max_cost_micros(of_tier, request.tier, max_tokens=request.max_tokens)
    month = f"{datetime.fromtimestamp(now_ms / 1000, tz=UTC):%Y-%m}"
    wants = [
        SpendRequest(_rule(principal.snapshot.tenant_id, budget, month), micros)
        for budget in spending.budgets
    ]
    return BudgetReservation(wants, of_tier, request.is_warm_up)


def raise_budget_exhausted(request: CompletionRequest) -> NoReturn:
    """An editor shows nothing, and no error; who chats is told."""
    if request.mode is Mode.CHAT:
        message = "The budget of this month is spent."
        raise TooManyRequests("budget", message, http_status=_PAYMENT_REQUIRED)
    raise CompletionDropped(FinishReason.BUDGET)


@lru_cache(maxsize=_MAX_RULES)
def _rule(tenant_id: TenantId, budget: HardBudget, month: str) -> BucketSpec:
    capacity = max(1, budget.limit_micros)
    max_lease = max(1, capacity // _MAX_LEASED_SHARE)
    return BucketSpec(
        kind=KIND,
        holder=tenant_id,
        key=spend_key(tenant_id, budget.budget_id, month),
        capacity=capacity,
        interval_s=None,
        lease=max(1, max_lease // 4),
        max_lease=max_lease,
        keep_s=KEEP_SPEND_S,
        max_debt=max_lease,
    )
