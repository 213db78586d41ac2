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
from tests.fakes.requests import make_account, make_request
from tests.fakes.tenants import ADA, ALICE, GLOBEX, GUS, make_principal

PRICES: Final = TierPrices(prompt=1_000_000, cached_prompt=100_000, generated=4_000_000)
TOKENS: Final = TokenPrices(effective_from_ms=0, tiers=dict.fromkeys(Tier, PRICES))
MOST: Final = 2_000 + 4 * 64  # maximum cost in micros of an inline request with 64 tokens
NOVEMBER: Final = round(datetime(2026, 11, 21, tzinfo=UTC).timestamp() * 1000)


def _bounded(
    *limits: int, scope: BudgetScope = BudgetScope.TENANT, users: tuple[UserId, ...] = ()
) -> SpendingLimits:
    budgets = [HardBudget(f"b{n}", scope, limit, users) for n, limit in enumerate(limits)]
    return SpendingLimits(prices=(TOKENS,), budgets=tuple(budgets))


def _used(prompt: int = 1_000, cached: int | None = 0, generated: int = 50) -> RequestTrace:
    account = make_account()
    account.mark_engine_called()
    account.prompt_tokens = prompt
    account.record_chunk(generated_tokens=generated, cached_tokens=cached)
    return account


def _cost(account: RequestTrace) -> int:
    return cost_micros(
        PRICES,
        billable_tokens(
            prompt=account.prompt_tokens,
            cached=account.cached_tokens,
            generated=account.generated_tokens,
        ),
    )


async def _asks(
    quotas: Quotas,
    principal: Principal,
    *,
    account: RequestTrace | None = None,
    request: CompletionRequest | None = None,
    ends: BaseException | None = None,
) -> str:
    """Return the code of the rejection, or "" if the request is admitted."""
    try:
        async with quotas.charge(principal, request or make_request(), account or make_account()):
            await asyncio.sleep(0)
            if ends is not None:
                raise ends
    except CompletionDropped as dropped:
        return dropped.finish
    except TooManyRequests as busy:
        return busy.code
    except BaseException as error:
        if error is not ends:
            raise
    return ""


async def test_a_spent_budget_lets_nobody_through() -> None:
    quotas, principal = make_quotas(), make_principal(spending=_bounded(10 * MOST))

    answers = [await _asks(quotas, principal, account=_used(2_000, 0, 64)) for _ in range(30)]

    assert answers == [""] * 10 + [FinishReason.BUDGET_EXCEEDED] * 20


async def test_who_asks_at_once_spends_no_more_than_who_asks_in_turn() -> None:
    clock = FakeClock()
    store = FakeLeaseStore(clock)
    gateways = [make_quotas(clock, store) for _ in range(3)]
    principal = make_principal(spending=_bounded(10 * MOST))

    answers = await asyncio.gather(
        *(_asks(gateways[n % 3], principal, account=_used(2_000, 0, 64)) for n in range(300))
    )

    assert 1 <= answers.count("") <= 10


@given(
    st.integers(MOST, 50 * MOST),
    st.lists(
        st.tuples(st.integers(0, 2_000), st.integers(0, 2_000), st.integers(0, 64)),
        min_size=1,
        max_size=60,
    ),
)
def test_whatever_requests_cost_together_they_never_exceed_the_budget(
    limit: int, used: list[tuple[int, int, int]]
) -> None:
    accounts = [_used(*tokens) for tokens in used]

    async def all_ask() -> list[str]:
        quotas, principal = make_quotas(), make_principal(spending=_bounded(limit))
        return await asyncio.gather(*(_asks(quotas, principal, account=each) for each in accounts))

    answers = asyncio.run(all_ask())

    let_through = [each for each, said in zip(accounts, answers, strict=True) if said == ""]
    assert sum(map(_cost, let_through)) <= limit


async def test_a_budget_is_settled_with_what_a_request_did_cost() -> None:
    quotas, principal = make_quotas(), make_principal(spending=_bounded(2 * MOST))

    # 10 + 4 x 1 micros each: many more fit than the two for which their reservations have room.
    answers = [await _asks(quotas, principal, account=_used(10, 0, 1)) for _ in range(150)]

    assert answers == [""] * 150


async def test_what_is_in_the_cache_costs_less() -> None:
    quotas, principal = make_quotas(), make_principal(spending=_bounded(MOST))
    cached = [await _asks(quotas, principal, account=_used(2_000, 2_000, 1)) for _ in range(2)]

    assert cached == [
        "",
        FinishReason.BUDGET_EXCEEDED,
    ]  # 204 micros are spent: a whole reservation does not fit


@pytest.mark.parametrize("mode", [Mode.INLINE, Mode.FIM, Mode.BLOCK, Mode.DOCSTRING])
async def test_an_editor_is_shown_nothing_and_no_error(mode: Mode) -> None:
    quotas, principal = make_quotas(), make_principal(spending=_bounded(1))

    assert (
        await _asks(quotas, principal, request=make_request(mode=mode))
        == FinishReason.BUDGET_EXCEEDED
    )


async def test_who_chats_is_told() -> None:
    quotas, principal = make_quotas(), make_principal(spending=_bounded(1))
    chat = make_request(mode=Mode.CHAT, prefix="")

    with pytest.raises(TooManyRequests) as refused:
        async with quotas.charge(principal, chat, make_account()):
            pass

    assert (refused.value.code, refused.value.http_status) == ("budget_exceeded", 402)
    assert refused.value.retry_after_s is None


async def test_the_tightest_of_several_budgets_decides_and_no_other_is_touched() -> None:
    clock = FakeClock()
    store = FakeLeaseStore(clock)
    principal = make_principal(spending=_bounded(100 * MOST, 1))

    assert await _asks(make_quotas(clock, store), principal) == FinishReason.BUDGET_EXCEEDED


async def test_a_users_budget_is_his_own() -> None:
    quotas = make_quotas()
    spending = _bounded(1, scope=BudgetScope.USER, users=(ADA,))

    assert await _asks(quotas, make_principal(spending=spending)) == FinishReason.BUDGET_EXCEEDED
    assert await _asks(quotas, make_principal(user_id=ALICE, spending=spending)) == ""


async def test_a_teams_budget_is_that_of_all_its_people() -> None:
    quotas = make_quotas()
    spending = _bounded(2 * MOST, scope=BudgetScope.TEAM, users=(ADA, ALICE))
    full = _used(2_000, 0, 64)

    answers = [
        await _asks(quotas, make_principal(user_id=user, spending=spending), account=full)
        for user in (ADA, ALICE, ADA, ALICE, None)
    ]

    assert answers == ["", "", FinishReason.BUDGET_EXCEEDED, FinishReason.BUDGET_EXCEEDED, ""]


async def test_a_tenants_budget_leaves_its_neighbour_alone() -> None:
    quotas = make_quotas()
    spent = _bounded(1)
    await _asks(quotas, make_principal(spending=spent))

    neighbour = make_principal(tenant_id=GLOBEX, user_id=GUS, spending=_bounded(10 * MOST))

    assert await _asks(quotas, neighbour) == ""


@pytest.mark.parametrize(
    "ends",
    [
        EngineError("engine_disconnected", ""),
        CompletionError("internal_error", ""),
        ValueError("defect"),
    ],
)
async def test_what_failed_costs_nothing(ends: BaseException) -> None:
    quotas, principal = make_quotas(), make_principal(spending=_bounded(MOST))
    for _ in range(20):
        await _asks(quotas, principal, account=_used(2_000, 0, 64), ends=ends)

    assert await _asks(quotas, principal) == ""


@pytest.mark.parametrize(
    "ends", [asyncio.CancelledError(FinishReason.SUPERSEDED.value), ClientDisconnected()]
)
async def test_who_leaves_pays_for_what_was_generated(ends: BaseException) -> None:
    quotas, principal = make_quotas(), make_principal(spending=_bounded(MOST))
    await _asks(quotas, principal, account=_used(2_000, 0, 64), ends=ends)

    assert await _asks(quotas, principal) == FinishReason.BUDGET_EXCEEDED


async def test_a_warm_up_costs_nothing_and_stops_with_the_budget() -> None:
    quotas, principal = make_quotas(), make_principal(spending=_bounded(MOST))
    warm_up = make_request(is_warm_up=True)
    for _ in range(20):
        assert await _asks(quotas, principal, request=warm_up, account=_used(2_000, 0, 1)) == ""
    await _asks(quotas, principal, account=_used(2_000, 0, 64))

    assert await _asks(quotas, principal, request=warm_up) == FinishReason.BUDGET_EXCEEDED


async def test_a_budget_is_whole_again_in_the_next_month() -> None:
    clock = FakeClock(now_ms=NOVEMBER)
    quotas, principal = make_quotas(clock), make_principal(spending=_bounded(MOST))
    await _asks(quotas, principal, account=_used(2_000, 0, 64))
    assert await _asks(quotas, principal) == FinishReason.BUDGET_EXCEEDED

    clock.pass_s(10 * 86_400)

    assert await _asks(quotas, principal) == ""


async def test_a_price_begins_at_its_time() -> None:
    clock = FakeClock(now_ms=NOVEMBER)
    dearer = TokenPrices(NOVEMBER + 1_000, dict.fromkeys(Tier, TierPrices(10**9, 10**9, 10**9)))
    spending = SpendingLimits((TOKENS, dearer), _bounded(MOST).budgets)
    quotas, principal = make_quotas(clock), make_principal(spending=spending)
    assert await _asks(quotas, principal) == ""

    clock.pass_s(1)

    assert await _asks(quotas, principal) == FinishReason.BUDGET_EXCEEDED


async def test_without_a_price_nothing_is_bounded() -> None:
    quotas = make_quotas()
    principal = make_principal(spending=SpendingLimits((), _bounded(1).budgets))

    assert await _asks(quotas, principal) == ""


async def test_a_store_that_is_away_lends_a_hundredth_of_the_budget() -> None:
    clock = FakeClock()
    store = FakeLeaseStore(clock)
    store.is_away = True
    quotas, principal = make_quotas(clock, store), make_principal(spending=_bounded(1_000 * MOST))

    answers = [await _asks(quotas, principal, account=_used(2_000, 0, 64)) for _ in range(50)]

    assert answers == [""] * 10 + [FinishReason.BUDGET_EXCEEDED] * 40


async def test_what_was_spent_meanwhile_is_booked_when_the_store_is_back() -> None:
    clock = FakeClock()
    store = FakeLeaseStore(clock)
    store.is_away = True
    quotas, principal = make_quotas(clock, store), make_principal(spending=_bounded(1_000 * MOST))
    for _ in range(10):
        await _asks(quotas, principal, account=_used(2_000, 0, 64))
    store.is_away = False
    clock.pass_s(PROBE_S)

    # rejected again; meanwhile the store is called in the background
    await _asks(quotas, principal)
    for _ in range(6):
        await asyncio.sleep(0)

    assert await _asks(quotas, principal) == ""
    await quotas.leases.close()
    assert sum(pool.used for pool in store.pools.values()) == 10 * MOST
