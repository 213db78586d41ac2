"""Rerouting: requests that wait too long at a replica are sent to an available fallback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from inference.completion.request_trace import RequestTrace
from inference.pools.engine import EngineChunk, EngineRequest
from inference.pools.generate import generate
from inference.pools.health.circuit_breaker import CircuitState
from inference.pools.health.outlier_detection import EJECTION_S, MAX_CONSECUTIVE_LATE
from inference.pools.health.replica_states import MAX_FAILURES, ReplicaStates, reroute_overdue
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.polling import wait_until
from tests.fakes.pools import make_engine_request, make_pool
from tests.fakes.requests import make_trace

ONE, TWO = make_pool("http://one:1", "http://two:1").replicas
LATE_S = 0.4  # after this time, a request without a first token is overdue
LATER_S = LATE_S + 0.1
WITH_FALLBACK = make_engine_request(
    replica=ONE, fallback_replicas=(TWO,), first_token_timeout_s=LATE_S
)
WITHOUT_FALLBACK = make_engine_request(replica=ONE, first_token_timeout_s=LATE_S)


class _Characters:
    """A tokenizer with one token per character."""

    def encode(self, text: str) -> list[int]:
        return [ord(character) for character in text]


class _TwoReplicas:
    """Two replicas. The first one hangs."""

    def __init__(self) -> None:
        self.engine = FakeEngine(chunks_of("a", "b"), stuck={ONE.url})
        self.clock = FakeClock()
        self.replicas = ReplicaStates(self.clock)
        self.traces: list[RequestTrace] = []

    @asynccontextmanager
    async def waiting_requests(
        self, num: int, request: EngineRequest = WITH_FALLBACK
    ) -> AsyncIterator[list[asyncio.Task[list[str]]]]:
        """Send this many requests at once, all of which wait at the first replica."""
        num_before = self.replicas.num_in_flight(ONE)
        tasks = [asyncio.create_task(self._request(request)) for _ in range(num)]
        await wait_until(lambda: self.replicas.num_in_flight(ONE) == num_before + num)
        try:
            yield tasks
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _request(self, request: EngineRequest) -> list[str]:
        trace = make_trace()
        self.traces.append(trace)
        async with generate(self.engine, request, self.replicas, trace, _Characters()) as chunks:
            return [chunk.text async for chunk in chunks]

    def try_to_reroute(self) -> bool:
        """Reroute overdue requests. Return whether any request was rerouted so far."""
        self.replicas.reroute_overdue()
        return self.replicas.num_rerouted(ONE) > 0


@pytest.fixture
def two_replicas() -> _TwoReplicas:
    return _TwoReplicas()


async def test_requests_waiting_at_a_late_replica_are_answered_by_another(
    two_replicas: _TwoReplicas,
) -> None:
    async with two_replicas.waiting_requests(MAX_CONSECUTIVE_LATE) as tasks:
        two_replicas.clock.pass_s(LATER_S)
        two_replicas.replicas.reroute_overdue()
        texts = await asyncio.gather(*tasks)

    assert texts == MAX_CONSECUTIVE_LATE * [["a", "b"]]
    assert {trace.replica for trace in two_replicas.traces} == {TWO.name}
    assert (two_replicas.replicas.num_rerouted(ONE), two_replicas.replicas.num_rerouted(TWO)) == (
        MAX_CONSECUTIVE_LATE,
        0,
    )
    assert (two_replicas.engine.num_open, two_replicas.replicas.num_in_flight(ONE)) == (0, 0)


async def test_rerouting_does_not_cancel_the_task(two_replicas: _TwoReplicas) -> None:
    async with two_replicas.waiting_requests(MAX_CONSECUTIVE_LATE) as tasks:
        two_replicas.clock.pass_s(LATER_S)
        two_replicas.replicas.reroute_overdue()
        await asyncio.gather(*tasks)

        assert {task.cancelling() for task in tasks} == {0}


async def test_rerouting_does_not_open_the_circuit(two_replicas: _TwoReplicas) -> None:
    async with two_replicas.waiting_requests(max(MAX_CONSECUTIVE_LATE, MAX_FAILURES)) as tasks:
        two_replicas.clock.pass_s(LATER_S)
        two_replicas.replicas.reroute_overdue()
        await asyncio.gather(*tasks)

    assert two_replicas.replicas.get_circuit(ONE) is CircuitState.CLOSED
    assert two_replicas.replicas.is_ejected(ONE)


async def test_few_waiting_requests_are_not_rerouted(two_replicas: _TwoReplicas) -> None:
    async with two_replicas.waiting_requests(MAX_CONSECUTIVE_LATE - 1):
        two_replicas.clock.pass_s(LATER_S)

        assert not two_replicas.try_to_reroute()


async def test_a_request_is_rerouted_only_after_its_own_time_limit(
    two_replicas: _TwoReplicas,
) -> None:
    async with two_replicas.waiting_requests(MAX_CONSECUTIVE_LATE) as first_tasks:
        two_replicas.clock.pass_s(LATER_S)
        async with two_replicas.waiting_requests(1) as (later_task,):
            two_replicas.replicas.reroute_overdue()
            await asyncio.gather(*first_tasks)

            assert not later_task.done()

            two_replicas.clock.pass_s(LATER_S)
            two_replicas.replicas.reroute_overdue()

            assert await later_task == ["a", "b"]


async def test_the_trial_request_of_a_late_replica_is_rerouted_too(
    two_replicas: _TwoReplicas,
) -> None:
    async with two_replicas.waiting_requests(MAX_CONSECUTIVE_LATE) as tasks:
        two_replicas.clock.pass_s(LATER_S)
        two_replicas.replicas.reroute_overdue()
        await asyncio.gather(*tasks)
    two_replicas.clock.pass_s(EJECTION_S)
    async with two_replicas.waiting_requests(1) as (trial,):
        two_replicas.clock.pass_s(LATER_S)
        two_replicas.replicas.reroute_overdue()

        assert await trial == ["a", "b"]
        assert two_replicas.replicas.is_ejected(ONE)


def _drain(two_replicas: _TwoReplicas) -> None:
    two_replicas.replicas.set_drained([TWO.name])


def _open_circuit(two_replicas: _TwoReplicas) -> None:
    for _ in range(MAX_FAILURES):
        with two_replicas.replicas.attempt(TWO) as attempt:
            attempt.mark_failed()


def _make_late(two_replicas: _TwoReplicas) -> None:
    for _ in range(MAX_CONSECUTIVE_LATE):
        with two_replicas.replicas.attempt(TWO, first_token_timeout_s=LATE_S):
            two_replicas.clock.pass_s(LATER_S)


@pytest.mark.parametrize("make_unavailable", [_drain, _open_circuit, _make_late])
async def test_requests_are_not_rerouted_to_a_drained_failed_or_late_fallback(
    two_replicas: _TwoReplicas, make_unavailable: Callable[[_TwoReplicas], None]
) -> None:
    async with two_replicas.waiting_requests(MAX_CONSECUTIVE_LATE):
        make_unavailable(two_replicas)
        two_replicas.clock.pass_s(LATER_S)

        assert not two_replicas.try_to_reroute()


async def test_a_request_with_text_is_not_rerouted(two_replicas: _TwoReplicas) -> None:
    # Text suffices: not every engine counts tokens while it streams.
    two_replicas.engine = FakeEngine([EngineChunk("a", generated_tokens=0, stop=None)], hangs=True)
    async with two_replicas.waiting_requests(MAX_CONSECUTIVE_LATE):
        await wait_until(lambda: two_replicas.engine.num_yielded == MAX_CONSECUTIVE_LATE)
        await asyncio.sleep(0.01)  # until the requests have recorded their text
        two_replicas.clock.pass_s(LATER_S)

        assert not two_replicas.try_to_reroute()


async def test_requests_without_a_fallback_keep_waiting(two_replicas: _TwoReplicas) -> None:
    async with two_replicas.waiting_requests(MAX_CONSECUTIVE_LATE, WITHOUT_FALLBACK):
        two_replicas.clock.pass_s(LATER_S)

        assert not two_replicas.try_to_reroute()


async def test_a_cancelled_request_is_not_rerouted(two_replicas: _TwoReplicas) -> None:
    async with two_replicas.waiting_requests(MAX_CONSECUTIVE_LATE) as tasks:
        two_replicas.clock.pass_s(LATER_S)
        tasks[0].cancel("superseded")
        two_replicas.replicas.reroute_overdue()
        results = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(results[0], asyncio.CancelledError)
    assert two_replicas.replicas.num_rerouted(ONE) == MAX_CONSECUTIVE_LATE - 1


async def test_a_request_can_be_cancelled_while_it_is_rerouted(two_replicas: _TwoReplicas) -> None:
    async with two_replicas.waiting_requests(MAX_CONSECUTIVE_LATE) as tasks:
        two_replicas.clock.pass_s(LATER_S)
        two_replicas.replicas.reroute_overdue()
        tasks[0].cancel("superseded")
        results = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == (MAX_CONSECUTIVE_LATE - 1) * [["a", "b"]]


async def test_a_background_task_reroutes_overdue_requests(two_replicas: _TwoReplicas) -> None:
    task = asyncio.create_task(reroute_overdue(two_replicas.replicas, every_s=0.001))
    async with two_replicas.waiting_requests(MAX_CONSECUTIVE_LATE) as tasks:
        two_replicas.clock.pass_s(LATER_S)
        await asyncio.gather(*tasks)
    task.cancel()
