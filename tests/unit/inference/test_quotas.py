"""Quotas: users' actions count, not their editors' requests; used tokens count, not reserved
ones."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from caret.contracts.policy import Mode, PolicyLimits, RateLimit, Tier, Trigger
from caret.contracts.usage import FinishReason
from inference.completion.request import CompletionRequest, Principal
from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionDropped, TooManyRequests
from inference.gateway.rate_limits.quotas import MAX_PREFETCHES, PREFETCH_S, REPEAT_S, Quotas
from tests.fakes.clock import FakeClock
from tests.fakes.leases import make_quotas
from tests.fakes.requests import make_account, make_request
from tests.fakes.tenants import ADA, ALICE, GLOBEX, GUS, make_policy, make_principal

FIVE = RateLimit(per_minute=60, burst=5)


def _limited(**limits: Any) -> Principal:
    return make_principal(policy=make_policy(limits=PolicyLimits(**limits)))


class Client:
    """Sends requests one after the other, each for another file."""

    def __init__(self, quotas: Quotas, principal: Principal) -> None:
        self.quotas = quotas
        self.principal = principal
        self.num_asked = 0

    def next_request(self, **fields: Any) -> CompletionRequest:
        self.num_asked += 1
        return make_request(**{"prefix": f"a{self.num_asked} = ", **fields})

    async def asks(
        self,
        request: CompletionRequest | None = None,
        *,
        account: RequestTrace | None = None,
        ends: BaseException | None = None,
    ) -> str:
        """Return the code of the rejection, or "" if the request is admitted."""
        request = request or self.next_request()
        try:
            async with self.quotas.charge(self.principal, request, account or make_account()):
                if ends is not None:
                    raise ends
        except TooManyRequests as busy:
            return busy.code
        except BaseException as error:
            if error is not ends:
                raise
        return ""

    async def is_let_through(self, count: int = 100, **fields: Any) -> int:
        answers = [await self.asks(self.next_request(**fields)) for _ in range(count)]
        return answers.count("")


@pytest.mark.parametrize("kind", ["tenant", "user", "key"])
async def test_each_limit_holds(kind: str) -> None:
    quotas = make_quotas()
    client = Client(quotas, _limited(**{kind: FIVE}))

    assert await client.is_let_through() == 5
    assert quotas.num_rejected == {kind: 95}


async def test_who_is_over_the_limit_is_told_when_to_come_back() -> None:
    clock = FakeClock()
    client = Client(make_quotas(clock), _limited(user=FIVE))
    await client.is_let_through()

    with pytest.raises(TooManyRequests) as refused:
        async with client.quotas.charge(client.principal, client.next_request(), make_account()):
            pass

    assert (refused.value.code, refused.value.http_status) == ("rate_limited", 429)
    assert refused.value.retry_after_s == pytest.approx(1.0)
    clock.pass_s(1.0)
    assert await client.asks() == ""


async def test_one_users_limit_leaves_the_other_users_alone() -> None:
    quotas, policy = make_quotas(), make_policy(limits=PolicyLimits(user=FIVE))
    ada, alice = (
        Client(quotas, make_principal(user_id=user, key_id=f"of {user}", policy=policy))
        for user in (ADA, ALICE)
    )
    await ada.is_let_through()

    assert await alice.is_let_through() == 5


async def test_one_tenants_limit_leaves_its_neighbour_alone() -> None:
    quotas, policy = make_quotas(), make_policy(limits=PolicyLimits(tenant=FIVE))
    acme = Client(quotas, make_principal(policy=policy))
    globex = Client(quotas, make_principal(tenant_id=GLOBEX, user_id=GUS, policy=policy))
    await acme.is_let_through()

    assert await globex.is_let_through() == 5


async def test_two_keys_of_one_user_share_the_users_limit() -> None:
    quotas, policy = make_quotas(), make_policy(limits=PolicyLimits(user=FIVE))
    first, second = (Client(quotas, make_principal(key_id=key, policy=policy)) for key in "ab")
    await first.is_let_through()

    assert await second.is_let_through() == 0


async def test_a_service_key_has_no_users_limit() -> None:
    policy = make_policy(limits=PolicyLimits(user=FIVE))
    client = Client(make_quotas(), make_principal(user_id=None, policy=policy))

    assert await client.is_let_through() == 100


async def test_what_nobody_waits_for_costs_a_tenth() -> None:
    client = Client(make_quotas(), _limited(user=FIVE))

    assert await client.is_let_through(is_warm_up=True) == 50


PREFETCH: dict[str, Any] = {"trigger": Trigger.PREFETCH}


async def test_prefetches_cost_a_tenth_where_there_were_as_many_actions() -> None:
    client = Client(make_quotas(), _limited(user=FIVE))

    let_through = [
        (await client.is_let_through(1), await client.is_let_through(1, **PREFETCH))
        for _ in range(4)
    ]

    # Eleven units of fifty for each pair: six are left, one action too few.
    assert let_through == [(1, 1)] * 4
    assert await client.is_let_through(1) == 0


async def test_who_calls_everything_a_prefetch_pays_for_everything() -> None:
    client = Client(make_quotas(), _limited(user=FIVE))

    assert await client.is_let_through(**PREFETCH) == 5


async def test_prefetches_that_were_paid_for_in_full_earn_no_others() -> None:
    client = Client(make_quotas(), _limited(user=FIVE))
    await client.is_let_through(1)

    # One at a tenth: 39 units remain, for three.
    assert await client.is_let_through(**PREFETCH) == 1 + 3


async def test_an_action_that_was_given_up_earns_no_prefetch() -> None:
    client = Client(make_quotas(), _limited(user=FIVE))
    for _ in range(10):
        await client.asks(ends=CompletionDropped(FinishReason.SUPERSEDED))

    assert await client.is_let_through(**PREFETCH) == 4


async def test_no_more_prefetches_are_saved_up_than_an_editor_needs() -> None:
    client = Client(make_quotas(), _limited(user=RateLimit(per_minute=1, burst=100)))
    await client.is_let_through(MAX_PREFETCHES + 10)

    # Of 1,000 units 300 are used: 20 at a tenth, and 680 remain for 68.
    assert await client.is_let_through(200, **PREFETCH) == MAX_PREFETCHES + 68


async def test_what_was_saved_up_is_for_soon_afterwards() -> None:
    clock = FakeClock()
    client = Client(make_quotas(clock), _limited(user=RateLimit(per_minute=1, burst=100)))
    await client.is_let_through(10)

    clock.pass_s(PREFETCH_S + 1)  # meanwhile one action is available again

    assert await client.is_let_through(200, **PREFETCH) == 91


async def test_several_requests_at_one_place_are_one_action() -> None:
    client = Client(make_quotas(), _limited(user=FIVE))
    for _ in range(4):
        same = client.next_request()
        assert [await client.asks(same) for _ in range(3)] == [""] * 3

    assert await client.is_let_through() == 0


async def test_the_same_place_later_is_another_action() -> None:
    clock = FakeClock()
    client = Client(make_quotas(clock), _limited(user=RateLimit(per_minute=10, burst=1)))
    same = client.next_request()
    await client.asks(same)

    clock.pass_s(REPEAT_S + 1)

    assert await client.asks(same) == "rate_limited"


async def test_a_chat_that_repeats_itself_is_an_action_each_time() -> None:
    client = Client(make_quotas(), _limited(user=FIVE))
    same = make_request(mode=Mode.CHAT, prefix="")

    assert [await client.asks(same) for _ in range(6)] == [""] * 5 + ["rate_limited"]


@pytest.mark.parametrize(
    "ends",
    [
        asyncio.CancelledError(FinishReason.SUPERSEDED.value),
        CompletionDropped(FinishReason.SHED),
        TooManyRequests("full", ""),
    ],
)
async def test_what_showed_nothing_costs_a_tenth(ends: BaseException) -> None:
    client = Client(make_quotas(), _limited(user=FIVE))

    answers = [await client.asks(ends=ends) for _ in range(41)]

    assert set(answers) <= {"", "full"}
    assert await client.is_let_through() == 0


async def test_what_showed_something_is_an_action_however_it_ended() -> None:
    client, account = Client(make_quotas(), _limited(user=FIVE)), make_account()
    account.record_sent_text("text", at_s=0.0)
    superseded = asyncio.CancelledError(FinishReason.SUPERSEDED.value)

    answers = [await client.asks(account=account, ends=superseded) for _ in range(6)]

    assert answers == [""] * 5 + ["rate_limited"]


async def test_without_limits_nothing_is_counted() -> None:
    client = Client(quotas := make_quotas(), make_principal())

    assert await client.is_let_through() == 100
    assert quotas.leases.num_buckets == 0


@pytest.mark.parametrize("wrong", [0, -1, -(10**18)])
async def test_a_limit_that_makes_no_sense_is_the_smallest(wrong: int) -> None:
    client = Client(make_quotas(), _limited(user=RateLimit(per_minute=wrong, burst=wrong)))

    assert await client.is_let_through(10) == 1


async def test_a_huge_limit_is_counted_with() -> None:
    huge = RateLimit(per_minute=1_000_000, burst=100_000)

    assert await Client(make_quotas(), _limited(user=huge)).is_let_through(500) == 500


def _used(prompt: int, generated: int) -> RequestTrace:
    account = make_account()
    account.mark_engine_called()
    account.prompt_tokens, account.generated_tokens = prompt, generated
    return account


async def test_a_spent_budget_is_told_with_the_end_of_the_day() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    clock = FakeClock(now_ms=round(noon.timestamp() * 1000))
    client = Client(make_quotas(clock), _limited(tokens_per_day={Tier.FAST: 1_000}))
    await client.asks(account=_used(900, 80))

    with pytest.raises(TooManyRequests) as refused:
        async with client.quotas.charge(client.principal, client.next_request(), make_account()):
            pass

    assert (refused.value.code, refused.value.http_status) == ("token_quota_exceeded", 429)
    assert refused.value.retry_after_s == 12 * 3600


async def test_a_budget_is_whole_again_on_the_next_day() -> None:
    clock = FakeClock()
    client = Client(make_quotas(clock), _limited(tokens_per_day={Tier.FAST: 1_000}))
    await client.asks(account=_used(1_000, 0))

    clock.pass_s(86_400)

    assert await client.asks() == ""


async def test_tokens_count_as_they_were_used_not_as_they_were_reserved() -> None:
    client = Client(make_quotas(), _limited(tokens_per_day={Tier.FAST: 1_000}))

    answers = [await client.asks(account=_used(10, 10)) for _ in range(60)]

    # The last one that fits leaves room for its own reservation of at least 64 tokens.
    assert 45 <= answers.count("") <= 50


async def test_what_never_reached_an_engine_used_no_tokens() -> None:
    client = Client(make_quotas(), _limited(tokens_per_day={Tier.FAST: 1_000}))

    shed = make_account()
    shed.prompt_tokens = 500

    answers = [
        await client.asks(account=shed, ends=CompletionDropped(FinishReason.SHED))
        for _ in range(100)
    ]

    assert set(answers) == {""}


async def test_tokens_of_what_was_superseded_count() -> None:
    client = Client(make_quotas(), _limited(tokens_per_day={Tier.FAST: 1_000}))
    superseded = asyncio.CancelledError(FinishReason.SUPERSEDED.value)

    answers = [await client.asks(account=_used(500, 0), ends=superseded) for _ in range(3)]

    assert answers == ["", "", "token_quota_exceeded"]


async def test_the_budget_of_one_tier_leaves_the_other_alone() -> None:
    budgets = {Tier.FAST: 1_000, Tier.QUALITY: 1_000}
    client = Client(make_quotas(), _limited(tokens_per_day=budgets))
    await client.asks(make_request(mode=Mode.BLOCK), account=_used(1_000, 0))

    assert await client.asks(make_request(mode=Mode.BLOCK)) == "token_quota_exceeded"
    assert await client.asks(make_request()) == ""
