"""generate: the engine is called, the trace is filled in, and the engine's stream is always
closed."""

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import MAX_SEND_S
from inference.errors import BadRequest, EngineError
from inference.pools import generate as stage
from inference.pools.engine import EngineChunk, EngineRequest, EngineStop
from inference.pools.generate import generate
from inference.pools.health.replica_states import MAX_FAILURES, ReplicaStates
from inference.pools.pool_config import Replica
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.polling import until
from tests.fakes.pools import make_engine_request, make_pool
from tests.fakes.requests import make_account

REQUEST = make_engine_request()
ONE, TWO = make_pool("http://one:1", "http://two:1").replicas
ASKED = make_engine_request(replica=ONE, fallback_replicas=(TWO,))


class _Characters:
    """A tokenizer with one token per character."""

    def encode(self, text: str) -> list[int]:
        return [ord(character) for character in text]


CHARACTERS = _Characters()


async def _drain(
    engine: FakeEngine,
    account: RequestTrace,
    replicas: ReplicaStates | None = None,
    *,
    asked: EngineRequest = REQUEST,
) -> list[str]:
    replicas = replicas or ReplicaStates(FakeClock())
    async with generate(engine, asked, replicas, account, CHARACTERS) as chunks:
        return [chunk.text async for chunk in chunks]


async def test_the_account_says_when_the_engine_was_asked() -> None:
    account = make_account()

    await _drain(FakeEngine(chunks_of("a")), account)

    assert account.engine_called_s == account.clock.monotonic_s()


async def test_the_account_says_what_was_generated() -> None:
    told = EngineChunk(text="", generated_tokens=2, stop=EngineStop.STOP, cached_tokens=2)
    account = make_account()

    texts = await _drain(FakeEngine([*chunks_of("a", "b"), told]), account)

    assert texts == ["a", "b", ""]
    assert (account.generated_tokens, account.cached_tokens) == (2, 2)


@pytest.mark.parametrize(
    "code", ["engine_unavailable", "engine_disconnected", "engine_invalid_response"]
)
async def test_a_replica_that_is_lost_again_and_again_gets_a_rest(code: str) -> None:
    replicas = ReplicaStates(FakeClock())
    engine = FakeEngine(error_at_start=EngineError(code, ""))

    for _ in range(MAX_FAILURES):
        with pytest.raises(EngineError):
            await _drain(engine, make_account(), replicas)

    assert not replicas.is_available(REQUEST.replica)


@pytest.mark.parametrize("code", ["engine_refused", "engine_busy", "prompt_refused"])
async def test_a_replica_that_answers_gets_no_rest(code: str) -> None:
    replicas = ReplicaStates(FakeClock())
    engine = FakeEngine(error=EngineError(code, ""))

    for _ in range(MAX_FAILURES):
        with pytest.raises(EngineError):
            await _drain(engine, make_account(), replicas)

    assert replicas.is_available(REQUEST.replica)


@pytest.mark.parametrize(
    "code", ["engine_unavailable", "engine_disconnected", "engine_invalid_response", "engine_busy"]
)
async def test_what_fails_before_it_begins_is_asked_of_another_replica(code: str) -> None:
    engine = FakeEngine(chunks_of("a"), failing={ONE.url: EngineError(code, "")})
    account = make_account()

    texts = await _drain(engine, account, asked=ASKED)

    assert texts == ["a"]
    assert [request.replica for request in engine.requests] == [ONE, TWO]
    assert (account.replica, engine.num_open) == (TWO.name, 0)


async def test_what_fails_is_not_asked_of_a_replica_that_was_drained_meanwhile() -> None:
    engine = FakeEngine(chunks_of("a"), failing={ONE.url: EngineError("engine_disconnected", "")})
    replicas = ReplicaStates(FakeClock())
    replicas.set_drained([TWO.name])

    with pytest.raises(EngineError):
        await _drain(engine, make_account(), replicas, asked=ASKED)

    assert [request.replica for request in engine.requests] == [ONE]


async def test_an_empty_stream_is_asked_of_another_replica() -> None:
    engine = FakeEngine(chunks_of("a"), silent={ONE.url: EngineError("engine_disconnected", "")})

    assert await _drain(engine, make_account(), asked=ASKED) == ["a"]


async def test_a_second_failure_is_the_last() -> None:
    engine = FakeEngine(error_at_start=EngineError("engine_unavailable", ""))

    with pytest.raises(EngineError):
        await _drain(engine, make_account(), asked=ASKED)

    assert len(engine.requests) == 2


@pytest.mark.parametrize("code", ["engine_refused", "prompt_refused"])
async def test_what_would_fail_again_is_not_asked_again(code: str) -> None:
    engine = FakeEngine(error_at_start=EngineError(code, ""))

    with pytest.raises(EngineError):
        await _drain(engine, make_account(), asked=ASKED)

    assert len(engine.requests) == 1


async def test_another_replica_goes_on_where_one_was_lost() -> None:
    engine = FakeEngine(chunks_of("c", "d"), torn={ONE.url: chunks_of("a", "b", stop=None)})
    account = make_account()

    texts = await _drain(engine, account, asked=ASKED)

    assert "".join(texts) == "abcd"
    _, second = engine.requests
    assert (second.replica, account.replica) == (TWO, TWO.name)
    assert second.token_ids == [*ASKED.token_ids, ord("a"), ord("b")]
    assert second.max_tokens == ASKED.max_tokens - 2
    assert (second.stop, second.stop_token_ids) == (ASKED.stop, ASKED.stop_token_ids)
    assert account.generated_tokens == 4


async def test_what_goes_on_elsewhere_has_no_more_cached_tokens_than_its_prompt() -> None:
    end = EngineChunk("", 2, EngineStop.STOP, cached_tokens=len(ASKED.token_ids) + 1)
    torn = {ONE.url: chunks_of("a", stop=None)}
    engine = FakeEngine([*chunks_of("c", stop=None), end], torn=torn)
    account = make_account()

    await _drain(engine, account, asked=ASKED)

    assert account.cached_tokens == len(ASKED.token_ids)


async def test_tokens_that_an_engine_held_back_are_counted_once() -> None:
    held = EngineChunk("ab", generated_tokens=4, stop=None)
    engine = FakeEngine(chunks_of("c", "d", "e"), torn={ONE.url: [held]})
    account = make_account()

    await _drain(engine, account, asked=ASKED)

    assert account.generated_tokens == 5


async def test_who_lost_only_its_end_asks_nobody() -> None:
    whole = chunks_of(*"abcdefgh", stop=None)
    assert len(whole) == ASKED.max_tokens
    engine = FakeEngine(torn={ONE.url: whole})

    async with generate(
        engine, ASKED, ReplicaStates(FakeClock()), make_account(), CHARACTERS
    ) as chunks:
        with capture_logs() as logs:
            stops = [chunk.stop async for chunk in chunks]

    assert (len(engine.requests), stops[-1]) == (1, EngineStop.LENGTH)
    assert [each["event"] for each in logs] == ["completion.end_lost"]


async def test_what_has_stopped_is_whole_though_its_end_is_lost() -> None:
    engine = FakeEngine(torn={ONE.url: chunks_of("a", "b")})

    texts = await _drain(engine, make_account(), asked=ASKED)

    assert (texts, len(engine.requests)) == (["a", "b"], 1)


@pytest.mark.parametrize("others", [(), (TWO,)], ids=["of one", "of two"])
async def test_what_no_replica_can_go_on_with_ends_where_it_is(others: tuple[Replica, ...]) -> None:
    said = chunks_of("a", stop=None)
    engine = FakeEngine(torn={ONE.url: said, TWO.url: said})
    asked, account = replace(ASKED, fallback_replicas=others), make_account()

    async with generate(engine, asked, ReplicaStates(FakeClock()), account, CHARACTERS) as chunks:
        told = [chunk async for chunk in chunks]

    assert told[-1] == EngineChunk("", 1 + len(others), EngineStop.DISCONNECTED)
    assert account.generated_tokens == len(engine.requests) == 1 + len(others)


async def test_what_is_lost_after_text_is_not_gone_on_with_where_an_operator_has_drained() -> None:
    engine = FakeEngine(torn={ONE.url: chunks_of("a", stop=None)})
    replicas = ReplicaStates(FakeClock())
    replicas.set_drained([TWO.name])

    assert await _drain(engine, make_account(), replicas, asked=ASKED) == ["a", ""]
    assert len(engine.requests) == 1


async def test_what_is_refused_after_text_is_not_gone_on_with() -> None:
    engine = FakeEngine(chunks_of("a", stop=None), error=EngineError("engine_refused", ""))

    assert await _drain(engine, make_account(), asked=ASKED) == ["a", ""]
    assert len(engine.requests) == 1


async def test_what_the_second_replica_refuses_after_text_ends_where_it_is() -> None:
    refused = {TWO.url: EngineError("engine_refused", "")}
    engine = FakeEngine(torn={ONE.url: chunks_of("a", stop=None)}, failing=refused)

    async with generate(
        engine, ASKED, ReplicaStates(FakeClock()), make_account(), CHARACTERS
    ) as chunks:
        told = [(chunk.text, chunk.stop) async for chunk in chunks]

    assert told == [("a", None), ("", EngineStop.DISCONNECTED)]
    assert len(engine.requests) == 2


async def test_who_leaves_while_another_goes_on_ends_that_one() -> None:
    torn = {ONE.url: chunks_of("a", stop=None)}
    engine = FakeEngine(chunks_of("b", stop=None), hangs=True, torn=torn)
    replicas = ReplicaStates(FakeClock())
    asking = asyncio.create_task(_drain(engine, make_account(), replicas, asked=ASKED))
    await until(lambda: engine.num_said == 2)

    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert (engine.num_open, replicas.num_in_flight(TWO)) == (0, 0)


async def test_who_leaves_during_the_second_attempt_ends_it() -> None:
    engine = FakeEngine(
        chunks_of("a", stop=None), hangs=True, failing={ONE.url: EngineError("engine_busy", "")}
    )
    replicas = ReplicaStates(FakeClock())
    asking = asyncio.create_task(_drain(engine, make_account(), replicas, asked=ASKED))
    await until(lambda: engine.num_said == 1)

    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert (engine.num_open, replicas.num_in_flight(TWO)) == (0, 0)


async def test_a_client_that_leaves_ends_the_engine() -> None:
    engine = FakeEngine(chunks_of("a", "b", stop=None), hangs=True)
    asking = asyncio.create_task(_drain(engine, make_account()))
    await until(lambda: engine.num_said == 2)

    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert engine.num_open == 0


async def test_a_reader_that_has_enough_ends_the_engine() -> None:
    engine = FakeEngine(chunks_of("a", "b", stop=None), hangs=True)

    replicas = ReplicaStates(FakeClock())
    async with generate(engine, REQUEST, replicas, make_account(), CHARACTERS) as chunks:
        await anext(aiter(chunks))

    assert engine.num_open == 0


async def test_a_completion_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MAX_COMPLETION_S", 0.02)  # the time limit itself, not our code
    engine = FakeEngine(chunks_of("a", stop=None), hangs=True)

    with pytest.raises(EngineError) as failed:
        async with asyncio.timeout(1.0):
            await _drain(engine, make_account())

    assert (failed.value.code, failed.value.http_status) == ("deadline_exceeded", 504)
    assert engine.num_open == 0


async def test_a_client_that_reads_too_slowly_is_to_blame_for_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stage, "MAX_COMPLETION_S", 0.02)  # the time limit itself, not our code
    engine = FakeEngine(chunks_of("a", stop=None), hangs=True)
    account = make_account()
    account.client_wait_s = MAX_SEND_S + 1

    with pytest.raises(BadRequest) as failed:
        await _drain(engine, account)

    assert (failed.value.code, failed.value.http_status) == ("too_slow", 408)
    assert engine.num_open == 0
