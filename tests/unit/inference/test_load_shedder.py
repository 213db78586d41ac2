"""Load shedding: a pool's limit follows latency, and requests above the limit are shed."""

from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any

import pytest

from caret.contracts.policy import Mode, Trigger
from caret.contracts.usage import FinishReason
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionDropped, EngineError
from inference.gateway.load_shedding.adaptive_limit import INITIAL_PER_FLOOR, RESET_AFTER_S
from inference.gateway.load_shedding.load_shedder import LoadShedder, PoolCapacity
from tests.fakes.clock import FakeClock
from tests.fakes.pools import TARGET_MS, make_load_shedder
from tests.fakes.requests import make_request, make_trace
from tests.fakes.tenants import GLOBEX, make_principal

POOL = "demo-fast"
FLOOR = 2  # the lowest limit of a pool with one replica


class Gateway:
    """The load shedder of a gateway with two pools, and its requests."""

    def __init__(self, *, max_num_seqs: int | None = None) -> None:
        self.clock = FakeClock()
        self.shedder: LoadShedder = make_load_shedder(
            POOL, "demo-quality", clock=self.clock, max_num_seqs=max_num_seqs
        )
        self.held_requests = ExitStack()

    def request(
        self, trace: RequestTrace | None = None, pool: str = POOL, **fields: Any
    ) -> AbstractContextManager[None]:
        """Return a block during which a request is in flight; CompletionDropped if it is shed."""
        trace = trace or make_trace(self.clock)
        return self.shedder.admit(pool, make_request(**fields), trace)

    def try_request(self, **fields: Any) -> bool:
        """Send a request that ends at once; return False if it was shed."""
        try:
            with self.request(**fields):
                return True
        except CompletionDropped as dropped:
            return dropped.finish_reason is not FinishReason.SHED

    def hold(self, count: int, *, pool: str = POOL) -> list[RequestTrace]:
        """Admit this many manual requests, and keep them in flight without a first token."""
        traces = [make_trace(self.clock) for _ in range(count)]
        for trace in traces:
            self.held_requests.enter_context(self.request(trace, pool, trigger=Trigger.MANUAL))
        return traces

    def serve(self, first_token_ms: float, *, num_together: int = 1, times: int = 1) -> None:
        """Serve requests, `num_together` at once, each with its first token after that time."""
        for _ in range(times):
            with ExitStack() as requests:
                traces = [make_trace(self.clock) for _ in range(num_together)]
                for trace in traces:
                    with suppress(CompletionDropped):
                        requests.enter_context(self.request(trace))
                self.clock.pass_s(first_token_ms / 1000)
                for trace in traces:
                    trace.record_chunk(generated_tokens=1, cached_tokens=None)

    def learn_a_small_limit(self) -> None:
        """Serve single requests within 10 ms, and then many at once that miss the target."""
        self.serve(10.0, times=20)
        self.serve(TARGET_MS * 4, num_together=12, times=3)

    @property
    def limit(self) -> float:
        return self.shedder.get_stats(POOL, Mode.INLINE).limit


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def test_an_idle_pool_admits_requests_with_any_trigger(gateway: Gateway) -> None:
    gateway.learn_a_small_limit()

    assert all(gateway.try_request(trigger=trigger) for trigger in Trigger)


def test_many_requests_served_in_time_are_admitted(gateway: Gateway) -> None:
    gateway.serve(20.0, num_together=50, times=5)

    assert not gateway.shedder.num_shed


def test_many_late_requests_lower_the_limit(gateway: Gateway) -> None:
    gateway.learn_a_small_limit()

    assert FLOOR <= gateway.limit <= 12  # 12 requests at once were late


def test_shed_requests_are_counted(gateway: Gateway) -> None:
    gateway.learn_a_small_limit()
    gateway.shedder.num_shed.clear()
    gateway.hold(int(gateway.limit))

    gateway.try_request(trigger=Trigger.AUTOMATIC)

    assert gateway.shedder.num_shed == {(POOL, Mode.INLINE, Trigger.AUTOMATIC): 1}


def test_slow_prompts_shed_nothing_if_no_more_are_in_flight_than_the_floor(
    gateway: Gateway,
) -> None:
    gateway.serve(10.0, times=20)

    gateway.serve(TARGET_MS * 10, times=50)
    gateway.serve(TARGET_MS * 10, num_together=FLOOR, times=50)

    assert not gateway.shedder.num_shed


def test_one_slow_prompt_does_not_affect_fast_ones(gateway: Gateway) -> None:
    gateway.serve(10.0, num_together=10, times=30)
    (slow,) = gateway.hold(1)
    for _ in range(20):
        gateway.serve(10.0, num_together=10)
    slow.record_chunk(generated_tokens=1, cached_tokens=None)

    gateway.serve(10.0, num_together=10, times=10)

    assert not gateway.shedder.num_shed


def test_overdue_requests_lower_the_limit_before_their_response(gateway: Gateway) -> None:
    gateway.serve(10.0, times=20)
    gateway.hold(20)
    limit_before = gateway.limit

    gateway.clock.pass_s(TARGET_MS * 1.5 / 1000)
    gateway.try_request()  # makes the shedder check the requests in flight

    assert gateway.limit < min(limit_before, 20)


def test_time_before_admission_does_not_count_as_latency(gateway: Gateway) -> None:
    gateway.serve(10.0, times=20)
    limit_before = gateway.limit
    traces = [make_trace(gateway.clock) for _ in range(20)]
    gateway.clock.pass_s(TARGET_MS * 10 / 1000)

    with ExitStack() as requests:
        for trace in traces:
            requests.enter_context(gateway.request(trace))
        gateway.clock.pass_s(0.01)
        for trace in traces:
            trace.record_chunk(generated_tokens=1, cached_tokens=None)

    assert gateway.limit >= limit_before
    p99_ms = gateway.shedder.get_stats(POOL, Mode.INLINE).first_token_p99_ms
    assert p99_ms is not None
    assert p99_ms < 12  # 10 ms; quantiles are exact to five percent


def test_requests_abandoned_in_time_do_not_count(gateway: Gateway) -> None:
    gateway.serve(10.0, times=20)
    limit_before = gateway.limit

    with ExitStack() as requests:
        for _ in range(20):
            requests.enter_context(gateway.request())

    assert gateway.limit == limit_before
    p99_ms = gateway.shedder.get_stats(POOL, Mode.INLINE).first_token_p99_ms
    assert p99_ms is not None
    assert p99_ms < 12  # 10 ms; quantiles are exact to five percent


def test_overdue_requests_count_when_abandoned(gateway: Gateway) -> None:
    with gateway.request():
        gateway.clock.pass_s(1.0)

    p99_ms = gateway.shedder.get_stats(POOL, Mode.INLINE).first_token_p99_ms
    assert p99_ms == pytest.approx(1_000, rel=0.05)  # quantiles are exact to five percent


def test_a_busy_engine_counts_as_late(gateway: Gateway) -> None:
    gateway.serve(10.0, times=20)
    limit_before = gateway.limit
    gateway.hold(20)

    for _ in range(20):
        with suppress(EngineError, CompletionDropped), gateway.request():
            raise EngineError("engine_busy", "")

    assert gateway.limit < limit_before


def test_a_rejection_by_a_busy_engine_does_not_lower_the_measured_latency(gateway: Gateway) -> None:
    gateway.serve(TARGET_MS * 4)

    for _ in range(200):
        with suppress(EngineError), gateway.request():
            raise EngineError("engine_busy", "")

    p99_ms = gateway.shedder.get_stats(POOL, Mode.INLINE).first_token_p99_ms
    assert p99_ms == pytest.approx(TARGET_MS * 4, rel=0.05)


def test_other_engine_errors_do_not_count(gateway: Gateway) -> None:
    gateway.serve(10.0, times=20)
    limit_before = gateway.limit
    gateway.hold(20)

    for _ in range(20):
        with pytest.raises(EngineError), gateway.request():
            raise EngineError("engine_disconnected", "")

    assert gateway.limit == limit_before


def test_prefetches_are_shed_before_automatic_and_manual_requests(gateway: Gateway) -> None:
    gateway.learn_a_small_limit()
    # For each trigger: the most requests in flight at which one more request is admitted.
    max_in_flight = dict.fromkeys(Trigger, 0)
    num_in_flight = 1
    gateway.hold(1)
    while gateway.try_request(trigger=Trigger.MANUAL):
        for trigger in Trigger:
            if gateway.try_request(trigger=trigger):
                max_in_flight[trigger] = num_in_flight
        gateway.hold(1)
        num_in_flight += 1

    assert max_in_flight[Trigger.PREFETCH] < max_in_flight[Trigger.AUTOMATIC]
    assert max_in_flight[Trigger.AUTOMATIC] <= max_in_flight[Trigger.MANUAL]


def test_warm_ups_are_shed_like_prefetches(gateway: Gateway) -> None:
    gateway.learn_a_small_limit()
    gateway.hold(int(gateway.limit / 2) + 1)  # prefetches are shed from half of the limit on

    assert not gateway.try_request(is_warm_up=True, trigger=Trigger.MANUAL)
    assert gateway.try_request(trigger=Trigger.MANUAL)


def test_a_full_pool_does_not_affect_another_pool(gateway: Gateway) -> None:
    gateway.learn_a_small_limit()
    gateway.hold(int(gateway.limit) + 1)

    assert not gateway.try_request()
    assert gateway.try_request(pool="demo-quality", mode=Mode.BLOCK)


def test_the_limit_is_reset_some_time_after_the_last_late_request(gateway: Gateway) -> None:
    gateway.learn_a_small_limit()

    gateway.clock.pass_s(RESET_AFTER_S + 1)
    gateway.try_request()

    assert gateway.limit == INITIAL_PER_FLOOR * FLOOR


def test_a_hanging_engine_gets_only_few_requests(gateway: Gateway) -> None:
    gateway.serve(10.0, times=20)
    num_admitted = 0
    for _ in range(500):
        gateway.clock.pass_s(0.02)
        with suppress(CompletionDropped):
            gateway.held_requests.enter_context(gateway.request())
            num_admitted += 1

    assert num_admitted <= 20  # of 500


@pytest.mark.parametrize("exception", [RuntimeError, GeneratorExit, KeyboardInterrupt])
def test_a_slot_is_freed_after_any_exception(
    gateway: Gateway, exception: type[BaseException]
) -> None:
    with pytest.raises(exception), gateway.request():
        raise exception

    assert gateway.shedder.get_stats(POOL, Mode.INLINE).num_in_flight == 0


def test_manual_requests_of_one_tenant_leave_room_for_another_tenant(gateway: Gateway) -> None:
    def try_to_hold(principal: Principal) -> bool:
        """Keep a request in flight; return False if it was shed."""
        trace = make_trace(gateway.clock)
        trace.principal = principal
        try:
            gateway.held_requests.enter_context(gateway.request(trace, trigger=Trigger.MANUAL))
        except CompletionDropped:
            return False
        return True

    busy_tenant = make_principal()
    while try_to_hold(busy_tenant):
        pass

    assert try_to_hold(make_principal(tenant_id=GLOBEX))
    assert not try_to_hold(busy_tenant)


def test_prefetches_need_a_free_place_in_a_batch_of_the_engine() -> None:
    gateway = Gateway(max_num_seqs=3)
    gateway.hold(2)
    assert gateway.try_request(trigger=Trigger.PREFETCH)

    gateway.hold(1)

    assert not gateway.try_request(trigger=Trigger.PREFETCH)
    assert gateway.try_request(trigger=Trigger.AUTOMATIC)


def test_the_first_limit_allows_one_running_and_one_waiting_batch() -> None:
    gateway = Gateway(max_num_seqs=3)
    assert gateway.limit == 6

    gateway.shedder.set_capacity(POOL, PoolCapacity(num_replicas=2, max_num_seqs=6))

    assert gateway.limit == 12


def test_a_change_of_replicas_keeps_the_learnt_limit() -> None:
    gateway = Gateway()
    gateway.learn_a_small_limit()
    limit = gateway.limit

    gateway.shedder.set_capacity(POOL, PoolCapacity(num_replicas=2, max_num_seqs=64))

    assert gateway.limit == limit


def test_new_replicas_raise_a_limit_below_the_new_floor() -> None:
    gateway = Gateway()
    gateway.learn_a_small_limit()

    gateway.shedder.set_capacity(POOL, PoolCapacity(num_replicas=10))

    assert gateway.limit == 10 * FLOOR
