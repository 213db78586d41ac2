"""Requests in languages with few accepted drafts go to replicas without speculative decoding."""

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from inference.completion.request_trace import RequestTrace
from inference.pools.cache_isolation import SpeculationMethod as Method
from inference.pools.health.replica_states import MAX_FAILURES
from inference.pools.pool_config import Pool, Replica
from inference.pools.speculation.acceptance_rate import HALF_LIFE_S, MIN_ACCEPTANCE
from inference.pools.speculation.speculative_decoding import SpeculationTracker
from inference.routing.route import Router, route
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pool, make_pools, make_router
from tests.fakes.requests import make_admitted, make_prompt, make_request, make_trace

# A replica without speculative decoding, and one that drafts tokens.
PLAIN, DRAFTING = make_pool("http://one:1", "http://two:1").replicas
DRAFTING = replace(DRAFTING, speculation=Method.NGRAM)
MIXED = replace(make_pool(), replicas=(PLAIN, DRAFTING))
PATHS = [f"src/{n}.py" for n in range(60)]


class FakeReader:
    """The counters of one engine."""

    def __init__(self) -> None:
        self.counters = dict.fromkeys(
            (
                "vllm:generation_tokens_total",
                "vllm:spec_decode_num_draft_tokens_total",
                "vllm:spec_decode_num_accepted_tokens_total",
            ),
            0.0,
        )
        self.positions = [0.0, 0.0]  # accepted tokens, by their position in the draft
        self.is_unreachable = False

    async def read(self, _replica: Replica) -> Mapping[str, list[float]] | None:
        if self.is_unreachable:
            return None
        return {
            **{name: [value] for name, value in self.counters.items()},
            # A draft has two tokens.
            "vllm:spec_decode_num_drafts_total": [
                self.counters["vllm:spec_decode_num_draft_tokens_total"] / 2
            ],
            "vllm:spec_decode_num_accepted_tokens_per_pos_total": [*self.positions],
        }

    def generate(self, tokens: int, *, drafted: float, accepted: float) -> None:
        for name, increase in zip(self.counters, (tokens, drafted, accepted), strict=True):
            self.counters[name] += increase
        # The first token of a draft is accepted three times as often as the second.
        self.positions[0] += 0.75 * accepted
        self.positions[1] += 0.25 * accepted


def _trace(language: str, tokens: int, *, replica: Replica = DRAFTING) -> RequestTrace:
    trace = make_trace()
    trace.request = make_request(language=language)
    trace.pool, trace.replica, trace.generated_tokens = MIXED.name, replica.name, tokens
    return trace


def _complete(speculation: SpeculationTracker, trace: RequestTrace) -> None:
    speculation.on_started(trace)
    speculation.on_completed(trace)


def _make_tracker(reader: FakeReader) -> SpeculationTracker:
    return SpeculationTracker(
        make_pools(MIXED), reader, FakeClock(), fallback_after_s=0, retry_after_s=3600
    )


async def _train_tracker(
    *,
    max_foreign_tokens: int = 0,
    pool: Pool = MIXED,
    clock: FakeClock | None = None,
    fallback_after_s: float = 0,
    retry_after_s: float = 10 * HALF_LIFE_S,
) -> SpeculationTracker:
    """Return a tracker after forty windows with 100 drafted tokens each.

    A window is the time between two polls. The windows alternate between Python, of which 90
    drafted tokens are accepted, and HTML, of which 10 are. In each window, the engine also
    generates up to `max_foreign_tokens` for requests of other gateways. 70% of the tokens drafted
    for these requests are accepted.
    """
    reader = FakeReader()
    speculation = SpeculationTracker(
        make_pools(pool),
        reader,
        clock or FakeClock(),
        fallback_after_s=fallback_after_s,
        retry_after_s=retry_after_s,
    )
    random_ = random.Random(20261126)
    await speculation.poll()
    for number in range(40):
        language, num_accepted = ("html", 10) if number % 2 else ("python", 90)
        num_foreign = random_.randint(0, max_foreign_tokens)
        _complete(speculation, _trace(language, 100))
        reader.generate(
            100 + num_foreign,
            drafted=100 + num_foreign,
            accepted=num_accepted + 0.7 * num_foreign,
        )
        await speculation.poll()
    return speculation


async def test_a_language_with_rejected_drafts_is_not_profitable() -> None:
    speculation = await _train_tracker()

    assert not speculation.is_profitable(MIXED.name, "html")
    assert speculation.is_profitable(MIXED.name, "python")
    assert speculation.is_profitable(MIXED.name, "rust")


async def test_a_language_falls_back_after_minutes_and_returns_when_its_estimate_has_faded() -> (
    None
):
    clock = FakeClock()
    speculation = await _train_tracker(clock=clock, fallback_after_s=600)

    assert speculation.is_profitable(MIXED.name, "html")
    clock.pass_s(601)
    assert not speculation.is_profitable(MIXED.name, "html")
    assert speculation.is_profitable(MIXED.name, "python")

    clock.pass_s(3 * HALF_LIFE_S)  # without requests, the estimate fades
    await speculation.poll()
    assert speculation.is_profitable(MIXED.name, "html")


async def test_a_language_is_tried_again_and_falls_back_again_if_its_acceptance_is_still_low() -> (
    None
):
    clock = FakeClock()
    speculation = await _train_tracker(clock=clock, fallback_after_s=300, retry_after_s=600)
    # A second before the next try: after 300 s there is a fallback, which lasts for 600 s.
    clock.pass_s(299 + 600)
    await speculation.poll()

    was_profitable = speculation.is_profitable(MIXED.name, "html")
    clock.pass_s(1)
    await speculation.poll()
    is_tried_again = speculation.is_profitable(MIXED.name, "html")
    clock.pass_s(300)
    await speculation.poll()

    assert (was_profitable, is_tried_again) == (False, True)
    assert not speculation.is_profitable(MIXED.name, "html")


async def test_acceptance_is_estimated_for_each_position_of_a_draft() -> None:
    estimates = (await _train_tracker()).estimates

    # A window has 50 drafts. Python: 67.5 and 22.5 accepted tokens, so the first share is cut to 1.
    # HTML: 7.5 and 2.5 accepted tokens.
    assert estimates[MIXED.name, "python"].by_position == pytest.approx((1.0, 0.45), abs=0.001)
    assert estimates[MIXED.name, "html"].by_position == pytest.approx((0.15, 0.05), abs=0.001)


async def test_languages_are_tracked_separately_for_each_pool() -> None:
    assert (await _train_tracker()).is_profitable("another", "html")


async def test_acceptance_is_estimated_although_other_gateways_use_the_same_engine() -> None:
    speculation = await _train_tracker(max_foreign_tokens=200)

    acceptance = {key: estimate.acceptance for key, estimate in speculation.estimates.items()}
    assert acceptance == {
        (MIXED.name, "python"): pytest.approx(0.9, abs=0.1),
        (MIXED.name, "html"): pytest.approx(0.1, abs=0.1),
    }
    assert not speculation.is_profitable(MIXED.name, "html")
    assert speculation.is_profitable(MIXED.name, "python")


async def test_windows_that_belong_mostly_to_other_gateways_are_ignored() -> None:
    assert (await _train_tracker(max_foreign_tokens=5_000)).estimates == {}


async def test_windows_with_fewer_tokens_than_the_gateway_received_are_ignored() -> None:
    speculation = await _poll_html_windows(num_generated=70)

    assert speculation.estimates == {}


async def test_a_pool_without_a_plain_replica_has_estimates_but_no_fallback() -> None:
    speculation = await _train_tracker(pool=replace(MIXED, replicas=(DRAFTING,)))

    acceptance = speculation.estimates[MIXED.name, "html"].acceptance
    assert acceptance is not None
    assert acceptance < MIN_ACCEPTANCE
    assert not speculation.is_using_fallback(MIXED.name, "html")


async def test_a_pool_with_a_plain_replica_uses_it_as_fallback() -> None:
    speculation = await _train_tracker()

    assert speculation.is_using_fallback(MIXED.name, "html")
    assert not speculation.is_using_fallback(MIXED.name, "python")


async def test_counters_of_a_restarted_engine_start_again() -> None:
    speculation = await _poll_html_windows(num_generated=100, restart_at=20)

    assert not speculation.is_profitable(MIXED.name, "html")


async def _poll_html_windows(
    *, num_generated: int, restart_at: int | None = None
) -> SpeculationTracker:
    """Poll 40 windows, in each of which the gateway received 100 tokens.

    The engine's counters grow by `num_generated` tokens in a window, and start again in the window
    `restart_at`.
    """
    reader = FakeReader()
    speculation = _make_tracker(reader)
    await speculation.poll()
    for number in range(40):
        _complete(speculation, _trace("html", 100))
        reader.generate(num_generated, drafted=num_generated, accepted=num_generated // 10)
        if number == restart_at:
            reader.counters = dict.fromkeys(reader.counters, 0.0)
        await speculation.poll()
    return speculation


async def test_an_unreachable_engine_is_polled_later() -> None:
    reader = FakeReader()
    speculation = _make_tracker(reader)
    await speculation.poll()
    for number in range(60):
        _complete(speculation, _trace("html", 100))
        reader.generate(100, drafted=100, accepted=10)
        reader.is_unreachable = number % 2 == 0
        await speculation.poll()

    assert not speculation.is_profitable(MIXED.name, "html")


async def test_long_completions_are_counted_in_each_window() -> None:
    reader = FakeReader()
    speculation = _make_tracker(reader)
    await speculation.poll()
    trace = _trace("html", 0)
    for number in range(60):
        if number % 5 == 0:  # a completion ends, and the next one begins
            speculation.on_completed(trace)
            trace = _trace("html", 0)
            speculation.on_started(trace)
        trace.generated_tokens += 100
        reader.generate(100, drafted=100, accepted=10)
        await speculation.poll()

    assert not speculation.is_profitable(MIXED.name, "html")


async def test_ended_completions_are_not_kept() -> None:
    speculation = _make_tracker(FakeReader())

    _complete(speculation, _trace("html", 100))

    assert not speculation._in_flight


def _replicas_of(router: Router, language: str) -> set[str]:
    return {
        route(router, make_admitted(path=path, language=language), make_prompt()).replica.name
        for path in PATHS
    }


async def test_unprofitable_languages_are_routed_to_plain_replicas() -> None:
    router = make_router(MIXED, speculation=await _train_tracker())

    assert _replicas_of(router, "html") == {PLAIN.name}
    assert _replicas_of(router, "python") == {PLAIN.name, DRAFTING.name}


async def test_the_drafting_replica_is_used_if_no_other_is_available() -> None:
    router = make_router(MIXED, speculation=await _train_tracker())
    for _ in range(MAX_FAILURES):
        with router.replicas.attempt(PLAIN) as attempt:
            attempt.mark_failed()

    assert _replicas_of(router, "html") == {DRAFTING.name}
