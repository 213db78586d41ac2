"""generate: the engine is asked, the account is kept, and the engine is left whatever happens."""

import asyncio

import pytest

from inference.completion.account import Account
from inference.errors import EngineFailed
from inference.pools import generate as stage
from inference.pools.engine import Chunk, EngineStop
from inference.pools.generate import generate
from inference.pools.health import REST_S, Health
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.pools import make_engine_request, make_pool
from tests.fakes.requests import make_account
from tests.fakes.waiting import until

REQUEST = make_engine_request()


async def _drain(engine: FakeEngine, account: Account, health: Health) -> list[str]:
    async with generate(engine, REQUEST, health, account) as chunks:
        return [chunk.text async for chunk in chunks]


async def test_the_account_says_when_the_engine_was_asked() -> None:
    account = make_account()

    await _drain(FakeEngine(chunks_of("a")), account, Health(FakeClock()))

    assert account.asked_engine_s == account.clock.monotonic_s()


async def test_the_account_says_what_was_generated() -> None:
    told = Chunk(text="", generated_tokens=2, stop=EngineStop.STOP, cached_tokens=16)
    account = make_account()

    texts = await _drain(FakeEngine([*chunks_of("a", "b"), told]), account, Health(FakeClock()))

    assert texts == ["a", "b", ""]
    assert (account.generated_tokens, account.cached_tokens) == (2, 16)


@pytest.mark.parametrize("code", ["engine_unavailable", "engine_lost"])
async def test_a_replica_that_is_lost_gets_a_rest(code: str) -> None:
    health = Health(FakeClock())
    engine = FakeEngine(error_at_start=EngineFailed(code, ""))

    with pytest.raises(EngineFailed):
        await _drain(engine, make_account(), health)

    assert health.is_resting(REQUEST.replica)


@pytest.mark.parametrize("code", ["engine_refused", "engine_garbled", "engine_busy"])
async def test_a_replica_that_answers_gets_no_rest(code: str) -> None:
    health = Health(FakeClock())
    engine = FakeEngine(chunks_of("a", stop=None), error=EngineFailed(code, ""))

    with pytest.raises(EngineFailed):
        await _drain(engine, make_account(), health)

    assert not health.is_resting(REQUEST.replica)


async def test_a_client_that_leaves_ends_the_engine() -> None:
    engine = FakeEngine(chunks_of("a", "b", stop=None), hangs=True)
    asking = asyncio.create_task(_drain(engine, make_account(), Health(FakeClock())))
    await until(lambda: engine.num_said == 2)

    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert engine.num_open == 0


async def test_a_reader_that_has_enough_ends_the_engine() -> None:
    engine = FakeEngine(chunks_of("a", "b", stop=None), hangs=True)

    async with generate(engine, REQUEST, Health(FakeClock()), make_account()) as chunks:
        await anext(aiter(chunks))

    assert engine.num_open == 0


async def test_a_completion_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MAX_COMPLETION_S", 0.02)  # the deadline itself, not our code
    engine = FakeEngine(chunks_of("a", stop=None), hangs=True)

    with pytest.raises(EngineFailed) as failed:
        await _drain(engine, make_account(), Health(FakeClock()))

    assert (failed.value.code, failed.value.http_status) == ("deadline", 504)
    assert engine.num_open == 0


def test_a_replica_rests_for_its_time_and_no_longer() -> None:
    clock = FakeClock()
    health = Health(clock)
    health.failed(REQUEST.replica)

    clock.pass_s(REST_S - 0.1)
    rests_before = health.is_resting(REQUEST.replica)
    clock.pass_s(0.1)

    assert rests_before
    assert not health.is_resting(REQUEST.replica)


def test_one_replicas_rest_is_not_anothers() -> None:
    health = Health(FakeClock())

    health.failed(REQUEST.replica)

    assert not health.is_resting(make_pool("http://engine-2:8000").replicas[0])
