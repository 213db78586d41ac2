"""Hard budgets of a tenant, its teams and its users for a UTC month.

A request reserves its maximum cost in all budgets that apply to it. If one of them has too little
left, nothing is reserved. When the request ends, its actual cost replaces the maximum. So while
Redis answers, concurrent requests never exceed a budget. Amounts are micros, by the prices of the
snapshot. The control plane and the gateway calculate them alike (caret.contracts.pricing).
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

KIND: Final = "spend"  # of a budget's bucket (see BucketSpec)
# A gateway leases at most a hundredth of a budget in advance (max_lease), besides the maximum
# costs of its running requests. If Redis does not respond when the lease is used up, the gateway
# may spend one more hundredth (max_debt).
_LEASE_DIVISOR: Final = 100
_MAX_CACHED_SPECS: Final = 20_000
_PAYMENT_REQUIRED: Final = 402  # clients do not retry this status


@dataclass(frozen=True, slots=True)
class BudgetReservation:
    """The amounts that a request must reserve."""

    spend_requests: Sequence[SpendRequest]  # one for each budget, in micros
    prices: TierPrices | None  # None: nothing is reserved
    is_warm_up: bool

    def compute_cost(self, trace: RequestTrace, *, has_failed: bool) -> int:
        """Return the cost in micros, rounded up. Failures and warm-ups cost nothing."""
        if self.prices is None or has_failed or self.is_warm_up:
            return 0
        tokens = billable_tokens(
            prompt=trace.prompt_tokens,
            cached=trace.cached_tokens,
            generated=trace.generated_tokens,
        )
        return cost_micros(self.prices, tokens)


_NOTHING: Final = BudgetReservation((), None, is_warm_up=False)


def plan_reservation(
    principal: Principal,
    request: CompletionRequest,
    *,
    now_ms: int,
    max_prompt_tokens: int,
    model: str,
) -> BudgetReservation:
    """Return the amounts to reserve before the request may continue.

    `max_prompt_tokens` is the maximum number of tokens in a prompt of the request's tier, and
    `model` is the model that will answer. The principal has a copy of the tenant's snapshot that
    contains only the budgets that apply to the principal's user (see `UserBudgets`).
    """
    spending = principal.snapshot.spending
    if not spending.budgets:
        return _NOTHING
    token_prices = prices_at(spending, now_ms)
    if token_prices is None:  # no prices are valid yet, so nothing has a cost
        return _NOTHING
    prices = token_prices.find_prices(request.tier, model=model)
    micros = max_cost_micros(
        prices, request.tier, max_tokens=request.max_tokens, prompt_tokens=max_prompt_tokens
    )
    month = f"{datetime.fromtimestamp(now_ms / 1000, tz=UTC):%Y-%m}"
    spend_requests = [
        SpendRequest(_build_bucket_spec(principal.snapshot.tenant_id, budget, month), micros)
        for budget in spending.budgets
    ]
    return BudgetReservation(spend_requests, prices, request.is_warm_up)


def raise_budget_exhausted(request: CompletionRequest) -> NoReturn:
    """Tell chat users about the budget, and end other requests without an error.

    Raises TooManyRequests (chat), CompletionDropped.
    """
    if request.mode is Mode.CHAT:
        message = (
            "This month's budget is used up. Completions resume next month (UTC), or when an "
            "administrator of the tenant raises the budget."
        )
        raise TooManyRequests("budget_exceeded", message, http_status=_PAYMENT_REQUIRED)
    raise CompletionDropped(FinishReason.BUDGET_EXCEEDED)


@lru_cache(maxsize=_MAX_CACHED_SPECS)
def _build_bucket_spec(tenant_id: TenantId, budget: HardBudget, month: str) -> BucketSpec:
    capacity = max(1, budget.limit_micros)
    max_lease = max(1, capacity // _LEASE_DIVISOR)
    return BucketSpec(
        kind=KIND,
        tenant_id=tenant_id,
        key=spend_key(tenant_id, budget.budget_id, month),
        capacity=capacity,
        interval_s=None,
        lease=max(1, max_lease // 4),  # grows up to max_lease (see BucketSpec)
        max_lease=max_lease,
        keep_s=KEEP_SPEND_S,
        max_debt=max_lease,
    )
