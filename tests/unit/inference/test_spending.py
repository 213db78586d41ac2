"""Budgets: admitted requests never cost more than a hard budget, whatever the concurrency."""

import asyncio
from datetime import UTC, datetime
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.policy import Mode, Tier
from caret.contracts.pricing import (
    BudgetScope,
    HardBudget,
    SpendingLimits,
    TierPrices,
    TokenPrices,
    billable_tokens,
    cost_micros,
)
from caret.contracts.usage import FinishReason
from caret.foundation.ids import UserId
from inference.completion.request import CompletionRequest, Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import ClientDisconnected
from inference.errors import CompletionDropped, CompletionError, EngineError, TooManyRequests
from inference.gateway.rate_limits.leases import PROBE_S
from inference.gateway.rate_limits.quotas import Quotas
from tests.fakes.clock import FakeClock
from tests.fakes.leases import FakeLeaseStore, make_quotas
from tests.fakes.requests import make_request, make_trace
from tests.fakes.tenants import ADA, ALICE, GLOBEX, GUS, make_principal

# In micros per million tokens.
PRICES: Final = TierPrices(prompt=1_000_000, cached_prompt=100_000, generated=4_000_000)
TOKEN_PRICES: Final = TokenPrices(effective_from_ms=0, tiers=dict.fromkeys(Tier, PRICES))
# Maximum cost in micros of an inline request: 2,000 tokens of a prompt and 64 generated tokens.
MAX_COST: Final = 2_000 + 4 * 64
NOVEMBER: Final = round(datetime(2026, 11, 21, tzinfo=UTC).timestamp() * 1000)


def _spending_limits(
    *limits: int, scope: BudgetScope = BudgetScope.TENANT, users: tuple[UserId, ...] = ()
) -> SpendingLimits:
    budgets = [HardBudget(f"b{n}", scope, limit, users) for n, limit in enumerate(limits)]
    return SpendingLimits(prices=(TOKEN_PRICES,), budgets=tuple(budgets))


def _trace_of_usage(
    prompt: int = 1_000, cached: int | None = 0, generated: int = 50
) -> RequestTrace:
    trace = make_trace()
    trace.mark_engine_called()
    trace.prompt_tokens = prompt
    trace.record_chunk(generated_tokens=generated, cached_tokens=cached)
    return trace


def _trace_of_max_cost() -> RequestTrace:
    return _trace_of_usage(2_000, 0, 64)


def _cost(trace: RequestTrace) -> int:
    return cost_micros(
        PRICES,
        billable_tokens(
            prompt=trace.prompt_tokens,
            cached=trace.cached_tokens,
            generated=trace.generated_tokens,
        ),
    )


async def _request(
    quotas: Quotas,
    principal: Principal,
    *,
    trace: RequestTrace | None = None,
    request: CompletionRequest | None = None,
    error_at_end: BaseException | None = None,
    model: str = "",
) -> str:
    """Return the finish reason or the code of a rejection, or "" if the request is admitted."""
    request, trace = request or make_request(), trace or make_trace()
    try:
        async with quotas.charge(principal, request, trace, model=model):
            await asyncio.sleep(0)
            if error_at_end is not None:
                raise error_at_end
    except CompletionDropped as dropped:
        return dropped.finish_reason
    except TooManyRequests as busy:
        return busy.code
    except BaseException as error:
        if error is not error_at_end:
            raise
    return ""


async def test_an_exhausted_budget_rejects_all_requests() -> None:
    quotas, principal = make_quotas(), make_principal(spending=_spending_limits(10 * MAX_COST))

    codes = [await _request(quotas, principal, trace=_trace_of_max_cost()) for _ in range(30)]

    assert codes == [""] * 10 + [FinishReason.BUDGET_EXCEEDED] * 20


async def test_the_budget_of_a_prompt_decides_how_much_is_reserved() -> None:
    quotas = make_quotas(prompt_tokens={Tier.FAST: 30_000, Tier.QUALITY: 4_000})

    # A prompt of 30,000 tokens may cost more than this budget, 22,560 micros.
    code = await _request(quotas, make_principal(spending=_spending_limits(10 * MAX_COST)))

    assert code == FinishReason.BUDGET_EXCEEDED


async def test_concurrent_requests_spend_no_more_than_sequential_ones() -> None:
    clock = FakeClock()
    store = FakeLeaseStore(clock)
    gateways = [make_quotas(clock, store) for _ in range(3)]
    principal = make_principal(spending=_spending_limits(10 * MAX_COST))

    codes = await asyncio.gather(
        *(_request(gateways[n % 3], principal, trace=_trace_of_max_cost()) for n in range(300))
    )

    assert 1 <= codes.count("") <= 10


@given(
    st.integers(MAX_COST, 50 * MAX_COST),
    st.lists(
        st.tuples(st.integers(0, 2_000), st.integers(0, 2_000), st.integers(0, 64)),
        min_size=1,
        max_size=60,
    ),
)
def test_requests_never_cost_more_than_the_budget(
    limit: int, used: list[tuple[int, int, int]]
) -> None:
    traces = [_trace_of_usage(*tokens) for tokens in used]

    async def request_all() -> list[str]:
        quotas, principal = make_quotas(), make_principal(spending=_spending_limits(limit))
        return await asyncio.gather(*(_request(quotas, principal, trace=trace) for trace in traces))

    codes = asyncio.run(request_all())

    admitted = [trace for trace, code in zip(traces, codes, strict=True) if code == ""]
    assert sum(map(_cost, admitted)) <= limit


async def test_a_budget_is_charged_with_the_actual_cost() -> None:
    quotas, principal = make_quotas(), make_principal(spending=_spending_limits(2 * MAX_COST))

    # The budget has room for the maximum cost of two requests. Each actually costs 14 micros.
    codes = [await _request(quotas, principal, trace=_trace_of_usage(10, 0, 1)) for _ in range(150)]

    assert codes == [""] * 150


async def test_cached_tokens_cost_less() -> None:
    quotas, principal = make_quotas(), make_principal(spending=_spending_limits(MAX_COST + 204))
    trace = _trace_of_usage(2_000, 2_000, 1)

    codes = [await _request(quotas, principal, trace=trace) for _ in range(3)]

    # A request costs 204 micros, and reserves its maximum cost. At the price of tokens that are not
    # cached, 2,004 micros, the budget would already be too small for the second request.
    assert codes == ["", "", FinishReason.BUDGET_EXCEEDED]


@pytest.mark.parametrize("mode", [Mode.INLINE, Mode.FIM, Mode.BLOCK, Mode.DOCSTRING])
async def test_an_exhausted_budget_rejects_every_mode_of_editors(mode: Mode) -> None:
    quotas, principal = make_quotas(), make_principal(spending=_spending_limits(1))

    assert (
        await _request(quotas, principal, request=make_request(mode=mode))
        == FinishReason.BUDGET_EXCEEDED
    )


async def test_a_chat_gets_an_error() -> None:
    quotas, principal = make_quotas(), make_principal(spending=_spending_limits(1))
    chat = make_request(mode=Mode.CHAT, prefix="")

    with pytest.raises(TooManyRequests) as rejected:
        async with quotas.charge(principal, chat, make_trace()):
            pass

    assert (rejected.value.code, rejected.value.http_status) == ("budget_exceeded", 402)
    assert rejected.value.retry_after_s is None


async def test_the_smallest_of_several_budgets_decides() -> None:
    principal = make_principal(spending=_spending_limits(100 * MAX_COST, 1))

    assert await _request(make_quotas(), principal) == FinishReason.BUDGET_EXCEEDED


async def test_a_user_budget_applies_only_to_its_user() -> None:
    quotas = make_quotas()
    spending = _spending_limits(1, scope=BudgetScope.USER, users=(ADA,))

    assert await _request(quotas, make_principal(spending=spending)) == FinishReason.BUDGET_EXCEEDED
    assert await _request(quotas, make_principal(user_id=ALICE, spending=spending)) == ""


async def test_a_team_budget_applies_to_all_its_users() -> None:
    quotas = make_quotas()
    spending = _spending_limits(2 * MAX_COST, scope=BudgetScope.TEAM, users=(ADA, ALICE))
    full = _trace_of_max_cost()

    codes = [
        await _request(quotas, make_principal(user_id=user, spending=spending), trace=full)
        for user in (ADA, ALICE, ADA, ALICE, None)  # None: a service key, which is in no team
    ]

    assert codes == ["", "", FinishReason.BUDGET_EXCEEDED, FinishReason.BUDGET_EXCEEDED, ""]


async def test_a_tenant_budget_does_not_affect_another_tenant() -> None:
    quotas = make_quotas()
    exhausted = _spending_limits(1)
    await _request(quotas, make_principal(spending=exhausted))
    neighbour = make_principal(
        tenant_id=GLOBEX, user_id=GUS, spending=_spending_limits(10 * MAX_COST)
    )

    assert await _request(quotas, neighbour) == ""


@pytest.mark.parametrize(
    "error_at_end",
    [
        EngineError("engine_disconnected", ""),
        CompletionError("internal_error", ""),
        ValueError("defect"),
    ],
)
async def test_a_failed_request_costs_nothing(error_at_end: BaseException) -> None:
    quotas, principal = make_quotas(), make_principal(spending=_spending_limits(MAX_COST))
    for _ in range(20):
        await _request(quotas, principal, trace=_trace_of_max_cost(), error_at_end=error_at_end)

    assert await _request(quotas, principal) == ""


@pytest.mark.parametrize(
    "error_at_end", [asyncio.CancelledError(FinishReason.SUPERSEDED.value), ClientDisconnected()]
)
async def test_an_abandoned_request_costs_its_generated_tokens(error_at_end: BaseException) -> None:
    quotas, principal = make_quotas(), make_principal(spending=_spending_limits(MAX_COST))
    await _request(quotas, principal, trace=_trace_of_max_cost(), error_at_end=error_at_end)

    assert await _request(quotas, principal) == FinishReason.BUDGET_EXCEEDED


async def test_a_warm_up_costs_nothing_and_is_rejected_once_the_budget_is_exhausted() -> None:
    quotas, principal = make_quotas(), make_principal(spending=_spending_limits(MAX_COST))
    warm_up = make_request(is_warm_up=True)
    for _ in range(20):
        trace = _trace_of_usage(2_000, 0, 1)
        assert await _request(quotas, principal, request=warm_up, trace=trace) == ""
    await _request(quotas, principal, trace=_trace_of_max_cost())

    assert await _request(quotas, principal, request=warm_up) == FinishReason.BUDGET_EXCEEDED


async def test_a_budget_is_renewed_in_the_next_month() -> None:
    clock = FakeClock(now_ms=NOVEMBER)
    quotas, principal = make_quotas(clock), make_principal(spending=_spending_limits(MAX_COST))
    await _request(quotas, principal, trace=_trace_of_max_cost())
    assert await _request(quotas, principal) == FinishReason.BUDGET_EXCEEDED

    clock.pass_s(10 * 86_400)  # from 21 November to 1 December

    assert await _request(quotas, principal) == ""


async def test_a_price_applies_from_its_time() -> None:
    clock = FakeClock(now_ms=NOVEMBER)
    higher = TokenPrices(NOVEMBER + 1_000, dict.fromkeys(Tier, TierPrices(10**9, 10**9, 10**9)))
    spending = SpendingLimits((TOKEN_PRICES, higher), _spending_limits(MAX_COST).budgets)
    quotas, principal = make_quotas(clock), make_principal(spending=spending)
    assert await _request(quotas, principal) == ""

    clock.pass_s(1)

    assert await _request(quotas, principal) == FinishReason.BUDGET_EXCEEDED


async def test_a_model_with_a_price_of_its_own_reserves_and_costs_that_price() -> None:
    higher = TierPrices(prompt=10_000_000, cached_prompt=1_000_000, generated=40_000_000)
    prices = TokenPrices(0, dict.fromkeys(Tier, PRICES), model_prices={"large": higher})
    spending = SpendingLimits((prices,), _spending_limits(12 * MAX_COST).budgets)
    quotas, principal = make_quotas(), make_principal(spending=spending)

    # The first request costs 10 * MAX_COST, and each other one MAX_COST.
    codes = [
        await _request(quotas, principal, trace=_trace_of_max_cost(), model=model)
        for model in ("large", "small", "another", "small")
    ]

    assert codes == ["", "", "", FinishReason.BUDGET_EXCEEDED]
    tight = make_principal(
        spending=SpendingLimits((prices,), _spending_limits(9 * MAX_COST).budgets)
    )
    assert await _request(make_quotas(), tight, model="large") == FinishReason.BUDGET_EXCEEDED


async def test_without_a_price_nothing_is_limited() -> None:
    quotas = make_quotas()
    principal = make_principal(spending=SpendingLimits((), _spending_limits(1).budgets))

    assert await _request(quotas, principal) == ""


async def test_an_unreachable_store_allows_a_hundredth_of_the_budget() -> None:
    clock = FakeClock()
    store = FakeLeaseStore(clock)
    store.is_unavailable = True
    quotas = make_quotas(clock, store)
    principal = make_principal(spending=_spending_limits(1_000 * MAX_COST))

    codes = [await _request(quotas, principal, trace=_trace_of_max_cost()) for _ in range(50)]

    assert codes == [""] * 10 + [FinishReason.BUDGET_EXCEEDED] * 40


async def test_spending_without_the_store_is_settled_later() -> None:
    clock = FakeClock()
    store = FakeLeaseStore(clock)
    store.is_unavailable = True
    quotas = make_quotas(clock, store)
    principal = make_principal(spending=_spending_limits(1_000 * MAX_COST))
    for _ in range(10):
        await _request(quotas, principal, trace=_trace_of_max_cost())
    store.is_unavailable = False
    clock.pass_s(PROBE_S)

    # This request is still rejected, and starts a call to the store in the background.
    await _request(quotas, principal)
    for _ in range(6):  # until the call has ended
        await asyncio.sleep(0)

    assert await _request(quotas, principal) == ""
    await quotas.leases.close()
    assert sum(bucket.used for bucket in store.buckets.values()) == 10 * MAX_COST
