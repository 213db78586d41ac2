"""Quotas count actions of users, not requests of editors, and used tokens, not reserved ones."""

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
from tests.fakes.requests import make_request, make_trace
from tests.fakes.tenants import ADA, ALICE, GLOBEX, GUS, make_policy, make_principal

# In the store, an action costs ten units, so that a tenth of an action is a whole number.
FIVE_ACTIONS = RateLimit(per_minute=60, burst=5)


def _principal_with_limits(**limits: Any) -> Principal:
    return make_principal(policy=make_policy(limits=PolicyLimits(**limits)))


class SequentialClient:
    """Sends requests one after the other, each for a different position."""

    def __init__(self, quotas: Quotas, principal: Principal) -> None:
        self.quotas = quotas
        self.principal = principal
        self.num_sent = 0

    def next_request(self, **fields: Any) -> CompletionRequest:
        self.num_sent += 1
        return make_request(**{"prefix": f"a{self.num_sent} = ", **fields})

    async def request(
        self,
        request: CompletionRequest | None = None,
        *,
        trace: RequestTrace | None = None,
        error_at_end: BaseException | None = None,
    ) -> str:
        """Return the code of the rejection, or "" if the request is admitted."""
        request = request or self.next_request()
        try:
            async with self.quotas.charge(self.principal, request, trace or make_trace()):
                if error_at_end is not None:
                    raise error_at_end
        except TooManyRequests as busy:
            return busy.code
        except BaseException as error:
            if error is not error_at_end:
                raise
        return ""

    async def count_admitted(self, count: int = 100, **fields: Any) -> int:
        """Send `count` requests, and return how many of them are admitted."""
        codes = [await self.request(self.next_request(**fields)) for _ in range(count)]
        return codes.count("")


@pytest.mark.parametrize("kind", ["tenant", "user", "key"])
async def test_each_limit_is_enforced(kind: str) -> None:
    quotas = make_quotas()
    client = SequentialClient(quotas, _principal_with_limits(**{kind: FIVE_ACTIONS}))

    assert await client.count_admitted() == 5
    assert quotas.num_rejected == {kind: 95}


async def test_a_rejection_contains_the_time_until_a_retry() -> None:
    clock = FakeClock()
    client = SequentialClient(make_quotas(clock), _principal_with_limits(user=FIVE_ACTIONS))
    await client.count_admitted()

    with pytest.raises(TooManyRequests) as rejected:
        async with client.quotas.charge(client.principal, client.next_request(), make_trace()):
            pass

    assert (rejected.value.code, rejected.value.http_status) == ("rate_limited", 429)
    assert rejected.value.retry_after_s == pytest.approx(1.0)
    clock.pass_s(1.0)
    assert await client.request() == ""


async def test_the_limit_of_a_user_does_not_affect_other_users() -> None:
    quotas, policy = make_quotas(), make_policy(limits=PolicyLimits(user=FIVE_ACTIONS))
    ada, alice = (
        SequentialClient(quotas, make_principal(user_id=user, key_id=f"of {user}", policy=policy))
        for user in (ADA, ALICE)
    )
    await ada.count_admitted()

    assert await alice.count_admitted() == 5


async def test_the_limit_of_a_tenant_does_not_affect_another() -> None:
    quotas, policy = make_quotas(), make_policy(limits=PolicyLimits(tenant=FIVE_ACTIONS))
    acme = SequentialClient(quotas, make_principal(policy=policy))
    globex = SequentialClient(quotas, make_principal(tenant_id=GLOBEX, user_id=GUS, policy=policy))
    await acme.count_admitted()

    assert await globex.count_admitted() == 5


async def test_two_keys_of_a_user_share_the_limit_of_the_user() -> None:
    quotas, policy = make_quotas(), make_policy(limits=PolicyLimits(user=FIVE_ACTIONS))
    first, second = (
        SequentialClient(quotas, make_principal(key_id=key, policy=policy)) for key in "ab"
    )
    await first.count_admitted()

    assert await second.count_admitted() == 0


async def test_a_service_key_has_no_user_limit() -> None:
    policy = make_policy(limits=PolicyLimits(user=FIVE_ACTIONS))
    client = SequentialClient(make_quotas(), make_principal(user_id=None, policy=policy))

    assert await client.count_admitted() == 100


async def test_a_warm_up_costs_a_tenth_of_an_action() -> None:
    client = SequentialClient(make_quotas(), _principal_with_limits(user=FIVE_ACTIONS))

    assert await client.count_admitted(is_warm_up=True) == 50


PREFETCH: dict[str, Any] = {"trigger": Trigger.PREFETCH}


async def test_each_action_earns_one_prefetch_at_a_tenth_of_the_price() -> None:
    client = SequentialClient(make_quotas(), _principal_with_limits(user=FIVE_ACTIONS))

    admitted = [
        (await client.count_admitted(1), await client.count_admitted(1, **PREFETCH))
        for _ in range(4)
    ]

    # An action costs 10 of the 50 units, a cheap prefetch 1. The six units left are too few.
    assert admitted == [(1, 1)] * 4
    assert await client.count_admitted(1) == 0


async def test_prefetches_without_actions_cost_the_full_price() -> None:
    client = SequentialClient(make_quotas(), _principal_with_limits(user=FIVE_ACTIONS))

    assert await client.count_admitted(**PREFETCH) == 5


async def test_prefetches_at_full_price_earn_no_cheap_ones() -> None:
    client = SequentialClient(make_quotas(), _principal_with_limits(user=FIVE_ACTIONS))
    await client.count_admitted(1)

    # The action costs 10 of the 50 units, and the first prefetch 1. The other 39 suffice for three.
    assert await client.count_admitted(**PREFETCH) == 1 + 3


async def test_an_abandoned_action_earns_no_cheap_prefetch() -> None:
    client = SequentialClient(make_quotas(), _principal_with_limits(user=FIVE_ACTIONS))
    for _ in range(10):
        await client.request(error_at_end=CompletionDropped(FinishReason.SUPERSEDED))

    # The abandoned requests cost 10 of the 50 units, and a prefetch costs 10.
    assert await client.count_admitted(**PREFETCH) == 4


async def test_the_number_of_earned_prefetches_is_limited() -> None:
    client = SequentialClient(
        make_quotas(), _principal_with_limits(user=RateLimit(per_minute=1, burst=100))
    )
    await client.count_admitted(MAX_PREFETCHES + 10)

    # Of the 1,000 units, 30 actions cost 300 and 20 cheap prefetches 20. The rest suffices for 68.
    assert await client.count_admitted(200, **PREFETCH) == MAX_PREFETCHES + 68


async def test_earned_prefetches_expire() -> None:
    clock = FakeClock()
    client = SequentialClient(
        make_quotas(clock), _principal_with_limits(user=RateLimit(per_minute=1, burst=100))
    )
    await client.count_admitted(10)

    clock.pass_s(PREFETCH_S + 1)

    # 10 of the 100 actions were used, and one of them has become available again.
    assert await client.count_admitted(200, **PREFETCH) == 91


async def test_a_repeated_request_at_one_position_costs_a_tenth_of_an_action() -> None:
    client = SequentialClient(make_quotas(), _principal_with_limits(user=FIVE_ACTIONS))
    for _ in range(4):
        repeated = client.next_request()
        assert [await client.request(repeated) for _ in range(3)] == [""] * 3

    # Each position costs 10 + 1 + 1 of the 50 units. The two units left are too few for an action.
    assert await client.count_admitted() == 0


async def test_a_later_request_at_the_same_position_is_another_action() -> None:
    clock = FakeClock()
    client = SequentialClient(
        make_quotas(clock), _principal_with_limits(user=RateLimit(per_minute=10, burst=1))
    )
    repeated = client.next_request()
    await client.request(repeated)

    # Within these 3 s, the limit of ten a minute does not admit a second action: that takes 6 s.
    clock.pass_s(REPEAT_S + 1)

    assert await client.request(repeated) == "rate_limited"


async def test_each_repeated_chat_is_an_action() -> None:
    client = SequentialClient(make_quotas(), _principal_with_limits(user=FIVE_ACTIONS))
    repeated = make_request(mode=Mode.CHAT, prefix="")

    assert [await client.request(repeated) for _ in range(6)] == [""] * 5 + ["rate_limited"]


@pytest.mark.parametrize(
    "error_at_end",
    [
        asyncio.CancelledError(FinishReason.SUPERSEDED.value),
        CompletionDropped(FinishReason.SHED),
        TooManyRequests("full", ""),
    ],
)
async def test_a_request_without_shown_text_costs_a_tenth_of_an_action(
    error_at_end: BaseException,
) -> None:
    client = SequentialClient(make_quotas(), _principal_with_limits(user=FIVE_ACTIONS))

    # These requests cost 41 of the 50 units. The other nine are too few for an action.
    codes = [await client.request(error_at_end=error_at_end) for _ in range(41)]

    assert set(codes) <= {"", "full"}
    assert await client.count_admitted() == 0


async def test_a_request_with_shown_text_is_an_action_however_it_ended() -> None:
    client = SequentialClient(make_quotas(), _principal_with_limits(user=FIVE_ACTIONS))
    trace = make_trace()
    trace.record_sent_text("text", at_s=0.0)
    superseded = asyncio.CancelledError(FinishReason.SUPERSEDED.value)

    codes = [await client.request(trace=trace, error_at_end=superseded) for _ in range(6)]

    assert codes == [""] * 5 + ["rate_limited"]


async def test_without_limits_nothing_is_counted() -> None:
    quotas = make_quotas()
    client = SequentialClient(quotas, make_principal())

    assert await client.count_admitted() == 100
    assert quotas.leases.num_buckets == 0


@pytest.mark.parametrize("invalid_limit", [0, -1, -(10**18)])
async def test_an_invalid_limit_counts_as_the_lowest_limit(invalid_limit: int) -> None:
    client = SequentialClient(
        make_quotas(),
        _principal_with_limits(user=RateLimit(per_minute=invalid_limit, burst=invalid_limit)),
    )

    assert await client.count_admitted(10) == 1


async def test_a_very_high_limit_admits_all_requests() -> None:
    high_limit = RateLimit(per_minute=1_000_000, burst=100_000)
    client = SequentialClient(make_quotas(), _principal_with_limits(user=high_limit))

    assert await client.count_admitted(500) == 500


def _make_trace_with_tokens(prompt: int, generated: int) -> RequestTrace:
    """Return the trace of a request that used these numbers of tokens."""
    trace = make_trace()
    trace.mark_engine_called()
    trace.prompt_tokens, trace.generated_tokens = prompt, generated
    return trace


async def test_an_exceeded_token_quota_is_reported_with_the_end_of_the_day() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    clock = FakeClock(now_ms=round(noon.timestamp() * 1000))
    client = SequentialClient(
        make_quotas(clock), _principal_with_limits(tokens_per_day={Tier.FAST: 1_000})
    )
    await client.request(trace=_make_trace_with_tokens(900, 80))

    with pytest.raises(TooManyRequests) as rejected:
        async with client.quotas.charge(client.principal, client.next_request(), make_trace()):
            pass

    assert (rejected.value.code, rejected.value.http_status) == ("token_quota_exceeded", 429)
    assert rejected.value.retry_after_s == 12 * 3600


async def test_a_token_quota_is_renewed_on_the_next_day() -> None:
    clock = FakeClock()
    client = SequentialClient(
        make_quotas(clock), _principal_with_limits(tokens_per_day={Tier.FAST: 1_000})
    )
    await client.request(trace=_make_trace_with_tokens(1_000, 0))

    clock.pass_s(86_400)

    assert await client.request() == ""


async def test_used_tokens_count_instead_of_reserved_ones() -> None:
    client = SequentialClient(
        make_quotas(), _principal_with_limits(tokens_per_day={Tier.FAST: 1_000})
    )

    codes = [await client.request(trace=_make_trace_with_tokens(10, 10)) for _ in range(60)]

    # Each request uses 20 tokens, but is admitted only if at least 64 tokens can be reserved.
    assert 45 <= codes.count("") <= 50


async def test_a_request_that_never_reached_an_engine_uses_no_tokens() -> None:
    client = SequentialClient(
        make_quotas(), _principal_with_limits(tokens_per_day={Tier.FAST: 1_000})
    )
    shed = make_trace()
    shed.prompt_tokens = 500

    codes = [
        await client.request(trace=shed, error_at_end=CompletionDropped(FinishReason.SHED))
        for _ in range(100)
    ]

    assert set(codes) == {""}


async def test_the_tokens_of_a_superseded_request_count() -> None:
    client = SequentialClient(
        make_quotas(), _principal_with_limits(tokens_per_day={Tier.FAST: 1_000})
    )
    superseded = asyncio.CancelledError(FinishReason.SUPERSEDED.value)

    codes = [
        await client.request(trace=_make_trace_with_tokens(500, 0), error_at_end=superseded)
        for _ in range(3)
    ]

    assert codes == ["", "", "token_quota_exceeded"]


async def test_the_token_quota_of_a_tier_does_not_affect_another_tier() -> None:
    tokens_per_day = {Tier.FAST: 1_000, Tier.QUALITY: 1_000}
    client = SequentialClient(make_quotas(), _principal_with_limits(tokens_per_day=tokens_per_day))
    await client.request(make_request(mode=Mode.BLOCK), trace=_make_trace_with_tokens(1_000, 0))

    assert await client.request(make_request(mode=Mode.BLOCK)) == "token_quota_exceeded"
    assert await client.request(make_request()) == ""
