"""Requests that wait at a late replica are retried on another one, if that is better."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from inference.completion.request_trace import RequestTrace
from inference.pools.engine import EngineChunk, EngineRequest
from inference.pools.generate import generate
from inference.pools.health.outlier_detection import EJECTION_S, MAX_CONSECUTIVE_LATE
from inference.pools.health.replica_states import MAX_FAILURES, ReplicaStates
from inference.pools.health.reroute import reroute_overdue
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.polling import until
from tests.fakes.pools import make_engine_request, make_pool
from tests.fakes.requests import make_account

ONE, TWO = make_pool("http://one:1", "http://two:1").replicas
LATE_S = 0.4
LATER_S = LATE_S + 0.1
ASKED = make_engine_request(replica=ONE, fallback_replicas=(TWO,), first_token_timeout_s=LATE_S)
NOWHERE_ELSE = make_engine_request(replica=ONE, first_token_timeout_s=LATE_S)


class _Characters:
    def encode(self, text: str) -> list[int]:
        return [ord(character) for character in text]


class _Site:
    """Two replicas, of which the first is stuck."""

    def __init__(self) -> None:
        self.engine = FakeEngine(chunks_of("a", "b"), stuck={ONE.url})
        self.clock = FakeClock()
        self.replicas = ReplicaStates(self.clock)
        self.accounts: list[RequestTrace] = []

    @asynccontextmanager
    async def asked(
        self, num: int, request: EngineRequest = ASKED
    ) -> AsyncIterator[list[asyncio.Task[list[str]]]]:
        """Send this many requests at once, all of which wait at the first replica."""
        num_before = self.replicas.num_in_flight(ONE)
        tasks = [asyncio.create_task(self._ask(request)) for _ in range(num)]
        await until(lambda: self.replicas.num_in_flight(ONE) == num_before + num)
        try:
            yield tasks
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, request: EngineRequest) -> list[str]:
        account = make_account()
        self.accounts.append(account)
        async with generate(self.engine, request, self.replicas, account, _Characters()) as chunks:
            return [chunk.text async for chunk in chunks]

    def has_moved(self) -> bool:
        self.replicas.reroute_overdue()
        return self.replicas.num_rerouted(ONE) > 0


@pytest.fixture
def site() -> _Site:
    return _Site()


async def test_who_waits_at_a_late_replica_is_answered_by_another(site: _Site) -> None:
    async with site.asked(MAX_CONSECUTIVE_LATE) as tasks:
        site.clock.pass_s(LATER_S)
        site.replicas.reroute_overdue()
        answers = await asyncio.gather(*tasks)

    assert answers == MAX_CONSECUTIVE_LATE * [["a", "b"]]
    assert {account.replica for account in site.accounts} == {TWO.name}
    assert (site.replicas.num_rerouted(ONE), site.replicas.num_rerouted(TWO)) == (
        MAX_CONSECUTIVE_LATE,
        0,
    )
    assert (site.engine.num_open, site.replicas.num_in_flight(ONE)) == (0, 0)


async def test_nobody_is_cancelled_by_it(site: _Site) -> None:
    async with site.asked(MAX_CONSECUTIVE_LATE) as tasks:
        site.clock.pass_s(LATER_S)
        site.replicas.reroute_overdue()
        await asyncio.gather(*tasks)

        assert {task.cancelling() for task in tasks} == {0}


async def test_it_is_no_failure_that_opens_a_circuit(site: _Site) -> None:
    async with site.asked(max(MAX_CONSECUTIVE_LATE, MAX_FAILURES)) as tasks:
        site.clock.pass_s(LATER_S)
        site.replicas.reroute_overdue()
        await asyncio.gather(*tasks)

    assert site.replicas.is_available(ONE)
    assert site.replicas.is_ejected(ONE)


async def test_one_that_waits_alone_may_have_a_long_prompt(site: _Site) -> None:
    async with site.asked(MAX_CONSECUTIVE_LATE - 1):
        site.clock.pass_s(LATER_S)

        assert not site.has_moved()


async def test_who_came_a_moment_ago_waits_for_the_first_token_in_time(site: _Site) -> None:
    async with site.asked(MAX_CONSECUTIVE_LATE) as early:
        site.clock.pass_s(LATER_S)
        async with site.asked(1) as late:
            site.replicas.reroute_overdue()
            await asyncio.gather(*early)

            assert not late[0].done()

            site.clock.pass_s(LATER_S)
            site.replicas.reroute_overdue()

            assert await late[0] == ["a", "b"]


async def test_the_one_that_tries_a_late_replica_is_moved_too(site: _Site) -> None:
    async with site.asked(MAX_CONSECUTIVE_LATE) as tasks:
        site.clock.pass_s(LATER_S)
        site.replicas.reroute_overdue()
        await asyncio.gather(*tasks)
    site.clock.pass_s(EJECTION_S)
    async with site.asked(1) as (trial,):
        site.clock.pass_s(LATER_S)
        site.replicas.reroute_overdue()

        assert await trial == ["a", "b"]
        assert site.replicas.is_ejected(ONE)


def _drained(site: _Site) -> None:
    site.replicas.set_drained([TWO.name])


def _lost(site: _Site) -> None:
    for _ in range(MAX_FAILURES):
        with site.replicas.attempt(TWO) as attempt:
            attempt.mark_failed()


def _late(site: _Site) -> None:
    for _ in range(MAX_CONSECUTIVE_LATE):
        with site.replicas.attempt(TWO, first_token_timeout_s=LATE_S):
            site.clock.pass_s(LATER_S)


@pytest.mark.parametrize("becomes", [_drained, _lost, _late])
async def test_nobody_is_moved_to_one_that_is_no_better(
    site: _Site, becomes: Callable[[_Site], None]
) -> None:
    async with site.asked(MAX_CONSECUTIVE_LATE):
        becomes(site)
        site.clock.pass_s(LATER_S)

        assert not site.has_moved()


async def test_who_has_text_that_is_not_counted_yet_stays(site: _Site) -> None:
    site.engine = FakeEngine([EngineChunk("a", generated_tokens=0, stop=None)], hangs=True)
    async with site.asked(MAX_CONSECUTIVE_LATE):
        await until(lambda: site.engine.num_said == MAX_CONSECUTIVE_LATE)
        await asyncio.sleep(0.01)
        site.clock.pass_s(LATER_S)

        assert not site.has_moved()


async def test_where_there_is_no_other_they_wait(site: _Site) -> None:
    async with site.asked(MAX_CONSECUTIVE_LATE, NOWHERE_ELSE):
        site.clock.pass_s(LATER_S)

        assert not site.has_moved()


async def test_who_was_cancelled_meanwhile_ends(site: _Site) -> None:
    async with site.asked(MAX_CONSECUTIVE_LATE) as tasks:
        site.clock.pass_s(LATER_S)
        tasks[0].cancel("superseded")
        site.replicas.reroute_overdue()
        ended = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(ended[0], asyncio.CancelledError)
    assert site.replicas.num_rerouted(ONE) == MAX_CONSECUTIVE_LATE - 1


async def test_who_is_cancelled_while_being_moved_ends(site: _Site) -> None:
    async with site.asked(MAX_CONSECUTIVE_LATE) as tasks:
        site.clock.pass_s(LATER_S)
        site.replicas.reroute_overdue()
        tasks[0].cancel("superseded")
        ended = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(ended[0], asyncio.CancelledError)
    assert ended[1:] == (MAX_CONSECUTIVE_LATE - 1) * [["a", "b"]]


async def test_a_task_looks_all_the_time(site: _Site) -> None:
    looking = asyncio.create_task(reroute_overdue(site.replicas, every_s=0.001))
    async with site.asked(MAX_CONSECUTIVE_LATE) as tasks:
        site.clock.pass_s(LATER_S)
        await asyncio.gather(*tasks)
    looking.cancel()
