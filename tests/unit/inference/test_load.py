"""Load shedding: admitted and shed requests, and the measurements taken from each."""

from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any

import pytest

from caret.contracts.policy import Mode, Trigger
from caret.contracts.usage import FinishReason
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionDropped, EngineError
from inference.gateway.load_shedding.adaptive_limit import FIRST, FORGET_S
from inference.gateway.load_shedding.load_shedder import LoadShedder
from tests.fakes.clock import FakeClock
from tests.fakes.pools import TARGET_MS, make_load
from tests.fakes.requests import make_account, make_request
from tests.fakes.tenants import GLOBEX, make_principal

POOL = "demo-fast"
FLOOR = 2  # of one replica


class Gateway:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.load: LoadShedder = make_load(POOL, "demo-quality", clock=self.clock)
        self.open = ExitStack()

    def one(
        self, account: RequestTrace | None = None, pool: str = POOL, **fields: Any
    ) -> AbstractContextManager[None]:
        account = account or make_account(self.clock)
        return self.load.admit(pool, make_request(**fields), account)

    def takes(self, **fields: Any) -> bool:
        try:
            with self.one(**fields):
                return True
        except CompletionDropped as dropped:
            return dropped.finish is not FinishReason.SHED

    def holds(self, count: int, *, pool: str = POOL) -> list[RequestTrace]:
        """Hold this many requests in flight, in the queue."""
        accounts = [make_account(self.clock) for _ in range(count)]
        for account in accounts:
            self.open.enter_context(self.one(account, pool, trigger=Trigger.MANUAL))
        return accounts

    def serves(self, after_ms: float, *, num_together: int = 1, times: int = 1) -> None:
        for _ in range(times):
            with ExitStack() as together:
                accounts = [make_account(self.clock) for _ in range(num_together)]
                for account in accounts:
                    with suppress(CompletionDropped):
                        together.enter_context(self.one(account))
                self.clock.pass_s(after_ms / 1000)
                for account in accounts:
                    account.record_chunk(generated_tokens=1, cached_tokens=None)

    def learns_a_small_limit(self) -> None:
        """Measure 10 ms without load, and then a crowd that takes much too long."""
        self.serves(10.0, times=20)
        self.serves(TARGET_MS * 4, num_together=12, times=3)

    @property
    def limit(self) -> float:
        return self.load.get_stats(POOL, Mode.INLINE).limit


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def test_an_idle_pool_takes_everything(gateway: Gateway) -> None:
    gateway.learns_a_small_limit()

    assert all(gateway.takes(trigger=trigger) for trigger in Trigger)


def test_a_crowd_that_is_served_in_time_is_taken(gateway: Gateway) -> None:
    gateway.serves(20.0, num_together=50, times=5)

    assert not gateway.load.num_shed


def test_a_crowd_that_comes_late_is_cut(gateway: Gateway) -> None:
    gateway.learns_a_small_limit()

    assert FLOOR <= gateway.limit <= 12


def test_what_is_shed_is_counted(gateway: Gateway) -> None:
    gateway.learns_a_small_limit()
    gateway.load.num_shed.clear()
    gateway.holds(int(gateway.limit))

    gateway.takes(trigger=Trigger.AUTOMATIC)

    assert gateway.load.num_shed == {(POOL, Mode.INLINE, Trigger.AUTOMATIC): 1}


def test_a_lone_developers_slow_prompts_shed_nothing(gateway: Gateway) -> None:
    gateway.serves(10.0, times=20)

    gateway.serves(TARGET_MS * 10, times=50)
    gateway.serves(TARGET_MS * 10, num_together=FLOOR, times=50)

    assert not gateway.load.num_shed


def test_one_slow_prompt_leaves_its_quick_neighbours_alone(gateway: Gateway) -> None:
    gateway.serves(10.0, num_together=10, times=30)
    (slow,) = gateway.holds(1)
    for _ in range(20):
        gateway.serves(10.0, num_together=10)
    slow.record_chunk(generated_tokens=1, cached_tokens=None)

    gateway.serves(10.0, num_together=10, times=10)

    assert not gateway.load.num_shed


def test_who_is_overdue_is_seen_before_it_is_answered(gateway: Gateway) -> None:
    gateway.serves(10.0, times=20)
    gateway.holds(20)
    before = gateway.limit

    gateway.clock.pass_s(TARGET_MS * 1.5 / 1000)
    gateway.takes()

    assert gateway.limit < min(before, 20)


def test_clients_that_send_slowly_tell_nothing_of_the_pool(gateway: Gateway) -> None:
    gateway.serves(10.0, times=20)
    before = gateway.limit
    accounts = [make_account(gateway.clock) for _ in range(20)]
    gateway.clock.pass_s(TARGET_MS * 10 / 1000)

    with ExitStack() as together:
        for account in accounts:
            together.enter_context(gateway.one(account))
        gateway.clock.pass_s(0.01)
        for account in accounts:
            account.record_chunk(generated_tokens=1, cached_tokens=None)

    assert gateway.limit >= before
    p99_ms = gateway.load.get_stats(POOL, Mode.INLINE).first_token_p99_ms
    assert p99_ms is not None
    assert p99_ms < 12


def test_who_leaves_in_time_says_nothing(gateway: Gateway) -> None:
    gateway.serves(10.0, times=20)
    before = gateway.limit

    with ExitStack() as together:
        for _ in range(20):
            together.enter_context(gateway.one())

    assert gateway.limit == before
    p99_ms = gateway.load.get_stats(POOL, Mode.INLINE).first_token_p99_ms
    assert p99_ms is not None
    assert p99_ms < 12


def test_who_leaves_when_it_is_overdue_counts_with_its_wait(gateway: Gateway) -> None:
    with gateway.one():
        gateway.clock.pass_s(1.0)

    p99_ms = gateway.load.get_stats(POOL, Mode.INLINE).first_token_p99_ms
    assert p99_ms == pytest.approx(1_000, rel=0.06)


def test_an_engine_whose_queue_is_full_is_taken_as_late(gateway: Gateway) -> None:
    gateway.serves(10.0, times=20)
    before = gateway.limit
    gateway.holds(20)

    for _ in range(20):
        with suppress(EngineError, CompletionDropped), gateway.one():
            raise EngineError("engine_busy", "")

    assert gateway.limit < before


def test_other_failures_say_nothing_of_the_load(gateway: Gateway) -> None:
    gateway.serves(10.0, times=20)
    before = gateway.limit
    gateway.holds(20)

    for _ in range(20):
        with pytest.raises(EngineError), gateway.one():
            raise EngineError("engine_disconnected", "")

    assert gateway.limit == before


def test_the_room_near_the_limit_is_for_those_who_pressed_a_key(gateway: Gateway) -> None:
    gateway.learns_a_small_limit()
    under_way, taken = 1, dict.fromkeys(Trigger, 0)
    gateway.holds(1)
    while gateway.takes(trigger=Trigger.MANUAL):
        for trigger in Trigger:
            taken[trigger] = under_way if gateway.takes(trigger=trigger) else taken[trigger]
        gateway.holds(1)
        under_way += 1

    assert taken[Trigger.PREFETCH] < taken[Trigger.AUTOMATIC] <= taken[Trigger.MANUAL]


def test_warm_ups_are_shed_like_prefetches(gateway: Gateway) -> None:
    gateway.learns_a_small_limit()
    gateway.holds(int(gateway.limit / 2) + 1)

    assert not gateway.takes(is_warm_up=True, trigger=Trigger.MANUAL)
    assert gateway.takes(trigger=Trigger.MANUAL)


def test_one_pools_crowd_leaves_the_other_pool_alone(gateway: Gateway) -> None:
    gateway.learns_a_small_limit()
    gateway.holds(int(gateway.limit) + 1)

    assert not gateway.takes()
    assert gateway.takes(pool="demo-quality", mode=Mode.BLOCK)


def test_half_a_minute_without_lateness_is_forgotten(gateway: Gateway) -> None:
    gateway.learns_a_small_limit()

    gateway.clock.pass_s(FORGET_S + 1)
    gateway.takes()

    assert gateway.limit == FIRST * FLOOR


def test_an_engine_that_hangs_holds_no_more_than_the_limit(gateway: Gateway) -> None:
    gateway.serves(10.0, times=20)
    held = 0
    for _ in range(500):
        gateway.clock.pass_s(0.02)
        with suppress(CompletionDropped):
            gateway.open.enter_context(gateway.one())
            held += 1

    assert held <= 20


@pytest.mark.parametrize("leaving", [RuntimeError, GeneratorExit, KeyboardInterrupt])
def test_its_place_is_free_however_somebody_leaves(
    gateway: Gateway, leaving: type[BaseException]
) -> None:
    with pytest.raises(leaving), gateway.one():
        raise leaving

    assert gateway.load.get_stats(POOL, Mode.INLINE).num_in_flight == 0


def test_one_tenants_manual_requests_do_not_shut_its_neighbour_out(gateway: Gateway) -> None:
    def asks(principal: Principal) -> bool:
        account = make_account(gateway.clock)
        account.principal = principal
        try:
            gateway.open.enter_context(gateway.one(account, trigger=Trigger.MANUAL))
        except CompletionDropped:
            return False
        return True

    hog = make_principal()
    while asks(hog):
        pass

    assert asks(make_principal(tenant_id=GLOBEX))
    assert not asks(hog)
