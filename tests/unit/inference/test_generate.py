"""generate: calls the engine, fills in the trace, and always closes the stream of the engine."""

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from inference.completion.generation_options import TimeLimits
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import MAX_SEND_S
from inference.errors import BadRequest, EngineError
from inference.pools.engine import EngineChunk, EngineRequest, EngineStop
from inference.pools.generate import ContinuesBelow, generate
from inference.pools.health.replica_states import MAX_FAILURES, ReplicaStates
from inference.pools.pool_config import Replica
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.polling import wait_until
from tests.fakes.pools import make_engine_request, make_pool
from tests.fakes.requests import make_trace

REQUEST = make_engine_request()
ONE, TWO = make_pool("http://one:1", "http://two:1").replicas
WITH_FALLBACK = make_engine_request(replica=ONE, fallback_replicas=(TWO,))


class _Characters:
    """A tokenizer with one token per character."""

    def encode(self, text: str) -> list[int]:
        return [ord(character) for character in text]


CHARACTERS = _Characters()


async def _read(
    engine: FakeEngine,
    trace: RequestTrace,
    replicas: ReplicaStates | None = None,
    *,
    request: EngineRequest = REQUEST,
    continues_below: ContinuesBelow | None = None,
) -> list[str]:
    replicas = replicas or ReplicaStates(FakeClock())
    async with generate(engine, request, replicas, trace, CHARACTERS, continues_below) as chunks:
        return [chunk.text async for chunk in chunks]


async def test_the_trace_records_when_the_engine_was_called() -> None:
    trace = make_trace()

    await _read(FakeEngine(chunks_of("a")), trace)

    assert trace.engine_called_s == trace.clock.monotonic_s()


async def test_the_trace_records_generated_and_cached_tokens() -> None:
    last_chunk = EngineChunk(text="", generated_tokens=2, stop=EngineStop.STOP, cached_tokens=2)
    trace = make_trace()

    texts = await _read(FakeEngine([*chunks_of("a", "b"), last_chunk]), trace)

    assert texts == ["a", "b", ""]
    assert (trace.generated_tokens, trace.cached_tokens) == (2, 2)


@pytest.mark.parametrize(
    "code", ["engine_unavailable", "engine_disconnected", "engine_invalid_response"]
)
async def test_a_replica_that_fails_repeatedly_becomes_unavailable(code: str) -> None:
    replicas = ReplicaStates(FakeClock())
    engine = FakeEngine(error_at_start=EngineError(code, ""))

    for _ in range(MAX_FAILURES):
        with pytest.raises(EngineError):
            await _read(engine, make_trace(), replicas)

    assert not replicas.is_available(REQUEST.replica)


@pytest.mark.parametrize("code", ["engine_refused", "engine_busy", "prompt_refused"])
async def test_a_replica_that_responds_with_errors_stays_available(code: str) -> None:
    replicas = ReplicaStates(FakeClock())
    engine = FakeEngine(error=EngineError(code, ""))

    for _ in range(MAX_FAILURES):
        with pytest.raises(EngineError):
            await _read(engine, make_trace(), replicas)

    assert replicas.is_available(REQUEST.replica)


@pytest.mark.parametrize(
    "code", ["engine_unavailable", "engine_disconnected", "engine_invalid_response", "engine_busy"]
)
async def test_a_request_that_fails_before_its_first_token_is_retried_on_another_replica(
    code: str,
) -> None:
    engine = FakeEngine(chunks_of("a"), failing={ONE.url: EngineError(code, "")})
    trace = make_trace()

    texts = await _read(engine, trace, request=WITH_FALLBACK)

    assert texts == ["a"]
    assert [request.replica for request in engine.requests] == [ONE, TWO]
    assert (trace.replica, engine.num_open) == (TWO.name, 0)


async def test_a_failed_request_is_not_retried_on_a_drained_replica() -> None:
    engine = FakeEngine(chunks_of("a"), failing={ONE.url: EngineError("engine_disconnected", "")})
    replicas = ReplicaStates(FakeClock())
    replicas.set_drained([TWO.name])

    with pytest.raises(EngineError):
        await _read(engine, make_trace(), replicas, request=WITH_FALLBACK)

    assert [request.replica for request in engine.requests] == [ONE]


async def test_an_empty_stream_is_retried_on_another_replica() -> None:
    engine = FakeEngine(chunks_of("a"), silent={ONE.url: EngineError("engine_disconnected", "")})

    assert await _read(engine, make_trace(), request=WITH_FALLBACK) == ["a"]


async def test_a_second_failure_is_final() -> None:
    engine = FakeEngine(error_at_start=EngineError("engine_unavailable", ""))

    with pytest.raises(EngineError):
        await _read(engine, make_trace(), request=WITH_FALLBACK)

    assert len(engine.requests) == 2


@pytest.mark.parametrize("code", ["engine_refused", "prompt_refused"])
async def test_permanent_errors_are_not_retried(code: str) -> None:
    engine = FakeEngine(error_at_start=EngineError(code, ""))

    with pytest.raises(EngineError):
        await _read(engine, make_trace(), request=WITH_FALLBACK)

    assert len(engine.requests) == 1


async def test_another_replica_continues_an_interrupted_completion() -> None:
    engine = FakeEngine(chunks_of("c", "d"), torn={ONE.url: chunks_of("a", "b", stop=None)})
    trace = make_trace()

    texts = await _read(engine, trace, request=replace(WITH_FALLBACK, required_prefix="ab"))

    assert "".join(texts) == "abcd"
    first, second = engine.requests
    assert (first.required_prefix, second.required_prefix) == ("ab", "")
    assert (second.replica, trace.replica) == (TWO, TWO.name)
    assert second.token_ids == [*WITH_FALLBACK.token_ids, ord("a"), ord("b")]
    assert second.max_tokens == WITH_FALLBACK.max_tokens - 2
    assert second.stop == WITH_FALLBACK.stop
    assert second.stop_token_ids == WITH_FALLBACK.stop_token_ids
    assert trace.generated_tokens == 4


async def test_a_continued_completion_has_no_more_cached_tokens_than_its_prompt() -> None:
    end = EngineChunk("", 2, EngineStop.STOP, cached_tokens=len(WITH_FALLBACK.token_ids) + 1)
    torn = {ONE.url: chunks_of("a", stop=None)}
    engine = FakeEngine([*chunks_of("c", stop=None), end], torn=torn)
    trace = make_trace()

    await _read(engine, trace, request=WITH_FALLBACK)

    assert trace.cached_tokens == len(WITH_FALLBACK.token_ids)


SINGLE_LINE = replace(REQUEST, stop=("x", "\n"))
# The engine stops after the line "a:". The fake engine sends the same chunks for each request.
_STOPPED_LINE = [
    *chunks_of("a:", stop=EngineStop.LINE),
    EngineChunk("", 1, EngineStop.LINE, cached_tokens=2),
]


async def test_a_line_that_opens_a_block_is_resumed_without_the_line_stop() -> None:
    engine, trace = FakeEngine(_STOPPED_LINE), make_trace()

    texts = await _read(
        engine, trace, request=SINGLE_LINE, continues_below=lambda text: text == "a:"
    )

    first, second = engine.requests
    assert ("".join(texts), engine.num_open) == ("a:\na:", 0)
    assert (first.stop, second.stop) == (("x", "\n"), ("x",))
    assert second.token_ids == [*SINGLE_LINE.token_ids, *CHARACTERS.encode("a:\n")]
    # Three tokens of "a:\n", and one of the second response.
    assert (trace.generated_tokens, trace.cached_tokens) == (4, 2)


async def test_the_lines_below_come_from_the_replica_that_generated_the_line() -> None:
    engine = FakeEngine(_STOPPED_LINE, failing={ONE.url: EngineError("engine_unavailable", "")})
    trace, request = make_trace(), replace(WITH_FALLBACK, stop=("\n",))

    await _read(engine, trace, request=request, continues_below=lambda text: text == "a:")

    assert [request.replica for request in engine.requests] == [ONE, TWO, TWO]
    assert trace.replica == TWO.name


async def test_a_line_that_ends_the_completion_is_not_resumed() -> None:
    engine = FakeEngine(_STOPPED_LINE)

    texts = await _read(engine, make_trace(), request=SINGLE_LINE, continues_below=lambda _: False)

    assert ("".join(texts), len(engine.requests)) == ("a:", 1)


async def test_a_line_that_uses_all_tokens_is_not_resumed() -> None:
    engine, request = FakeEngine(_STOPPED_LINE), replace(SINGLE_LINE, max_tokens=len("a:\n"))

    await _read(engine, make_trace(), request=request, continues_below=lambda _: True)

    assert len(engine.requests) == 1


async def test_tokens_held_back_by_the_engine_are_counted_once() -> None:
    # The first replica generates four tokens, of which it sends two. The second one adds three.
    held_chunk = EngineChunk("ab", generated_tokens=4, stop=None)
    engine = FakeEngine(chunks_of("c", "d", "e"), torn={ONE.url: [held_chunk]})
    trace = make_trace()

    await _read(engine, trace, request=WITH_FALLBACK)

    assert trace.generated_tokens == 5


async def test_a_lost_end_after_the_last_token_is_not_retried() -> None:
    complete = chunks_of(*"abcdefgh", stop=None)
    assert len(complete) == WITH_FALLBACK.max_tokens
    engine = FakeEngine(torn={ONE.url: complete})

    async with generate(
        engine, WITH_FALLBACK, ReplicaStates(FakeClock()), make_trace(), CHARACTERS
    ) as chunks:
        with capture_logs() as logs:
            stops = [chunk.stop async for chunk in chunks]

    assert (len(engine.requests), stops[-1]) == (1, EngineStop.LENGTH)
    assert [entry["event"] for entry in logs] == ["completion.end_lost"]


async def test_a_stopped_completion_with_a_lost_end_is_complete() -> None:
    engine = FakeEngine(torn={ONE.url: chunks_of("a", "b")})

    texts = await _read(engine, make_trace(), request=WITH_FALLBACK)

    assert (texts, len(engine.requests)) == (["a", "b"], 1)


@pytest.mark.parametrize("fallbacks", [(), (TWO,)], ids=["one replica", "two replicas"])
async def test_a_completion_that_no_replica_can_continue_ends_as_disconnected(
    fallbacks: tuple[Replica, ...],
) -> None:
    interrupted = chunks_of("a", stop=None)
    engine = FakeEngine(torn={ONE.url: interrupted, TWO.url: interrupted})
    request, trace = replace(WITH_FALLBACK, fallback_replicas=fallbacks), make_trace()

    async with generate(engine, request, ReplicaStates(FakeClock()), trace, CHARACTERS) as chunks:
        chunks_read = [chunk async for chunk in chunks]

    assert chunks_read[-1] == EngineChunk("", 1 + len(fallbacks), EngineStop.DISCONNECTED)
    assert trace.generated_tokens == len(engine.requests) == 1 + len(fallbacks)


async def test_an_interrupted_completion_is_not_continued_on_a_drained_replica() -> None:
    engine = FakeEngine(torn={ONE.url: chunks_of("a", stop=None)})
    replicas = ReplicaStates(FakeClock())
    replicas.set_drained([TWO.name])

    assert await _read(engine, make_trace(), replicas, request=WITH_FALLBACK) == ["a", ""]
    assert len(engine.requests) == 1


async def test_a_refusal_after_the_first_text_is_not_retried() -> None:
    engine = FakeEngine(chunks_of("a", stop=None), error=EngineError("engine_refused", ""))

    assert await _read(engine, make_trace(), request=WITH_FALLBACK) == ["a", ""]
    assert len(engine.requests) == 1


async def test_a_refusal_by_the_second_replica_ends_the_completion() -> None:
    refusals = {TWO.url: EngineError("engine_refused", "")}
    engine = FakeEngine(torn={ONE.url: chunks_of("a", stop=None)}, failing=refusals)

    async with generate(
        engine, WITH_FALLBACK, ReplicaStates(FakeClock()), make_trace(), CHARACTERS
    ) as chunks:
        chunks_read = [(chunk.text, chunk.stop) async for chunk in chunks]

    assert chunks_read == [("a", None), ("", EngineStop.DISCONNECTED)]
    assert len(engine.requests) == 2


async def test_a_client_that_disconnects_during_the_continuation_ends_it() -> None:
    torn = {ONE.url: chunks_of("a", stop=None)}
    engine = FakeEngine(chunks_of("b", stop=None), hangs=True, torn=torn)
    replicas = ReplicaStates(FakeClock())
    task = asyncio.create_task(_read(engine, make_trace(), replicas, request=WITH_FALLBACK))
    await wait_until(lambda: engine.num_yielded == 2)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert (engine.num_open, replicas.num_in_flight(TWO)) == (0, 0)


async def test_a_client_that_leaves_during_the_second_attempt_ends_it() -> None:
    engine = FakeEngine(
        chunks_of("a", stop=None), hangs=True, failing={ONE.url: EngineError("engine_busy", "")}
    )
    replicas = ReplicaStates(FakeClock())
    task = asyncio.create_task(_read(engine, make_trace(), replicas, request=WITH_FALLBACK))
    await wait_until(lambda: engine.num_yielded == 1)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert (engine.num_open, replicas.num_in_flight(TWO)) == (0, 0)


async def test_a_client_that_leaves_ends_the_engine_request() -> None:
    engine = FakeEngine(chunks_of("a", "b", stop=None), hangs=True)
    task = asyncio.create_task(_read(engine, make_trace()))
    await wait_until(lambda: engine.num_yielded == 2)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert engine.num_open == 0


async def test_a_reader_that_stops_ends_the_engine_request() -> None:
    engine = FakeEngine(chunks_of("a", "b", stop=None), hangs=True)
    replicas = ReplicaStates(FakeClock())

    async with generate(engine, REQUEST, replicas, make_trace(), CHARACTERS) as chunks:
        await anext(aiter(chunks))

    assert engine.num_open == 0


async def test_a_completion_over_the_time_limit_is_ended() -> None:
    engine = FakeEngine(chunks_of("a", stop=None), hangs=True)

    with pytest.raises(EngineError) as exc_info:
        async with asyncio.timeout(1.0):
            await _read(engine, make_trace(), request=replace(REQUEST, max_duration_s=0.02))

    assert (exc_info.value.code, exc_info.value.http_status) == ("deadline_exceeded", 504)
    assert engine.num_open == 0


async def test_a_slow_client_that_used_up_the_time_gets_the_error_too_slow() -> None:
    engine = FakeEngine(chunks_of("a", stop=None), hangs=True)
    trace = make_trace()
    trace.client_wait_s = MAX_SEND_S + 1

    with pytest.raises(BadRequest) as exc_info:
        await _read(engine, trace, request=replace(REQUEST, max_duration_s=0.02))

    assert (exc_info.value.code, exc_info.value.http_status) == ("too_slow", 408)
    assert engine.num_open == 0


async def test_the_time_limit_of_the_client_ends_a_slow_generation() -> None:
    engine, trace = FakeEngine(chunks_of("a", "b", stop=None), hangs=True), make_trace()
    request = replace(REQUEST, time_limits=TimeLimits(generation_ms=20))

    async with generate(engine, request, ReplicaStates(FakeClock()), trace, CHARACTERS) as chunks:
        parts = [(chunk.text, chunk.stop) async for chunk in chunks]

    assert parts == [("a", None), ("b", None), ("", EngineStop.LENGTH)]
    assert (engine.num_open, trace.generated_tokens) == (0, 2)


async def test_the_time_limit_for_the_first_token_ends_a_long_wait() -> None:
    engine, replicas = FakeEngine(hangs=True), ReplicaStates(FakeClock())
    request = replace(REQUEST, time_limits=TimeLimits(first_token_ms=20, generation_ms=5_000))

    texts = await _read(engine, make_trace(), replicas, request=request)

    assert (texts, engine.num_open) == ([""], 0)
    assert replicas.is_available(REQUEST.replica)


async def test_a_fast_generation_is_not_limited() -> None:
    limits = TimeLimits(first_token_ms=5_000, generation_ms=5_000)
    request = replace(REQUEST, time_limits=limits)

    texts = await _read(FakeEngine(chunks_of("a", "b")), make_trace(), request=request)

    assert texts == ["a", "b"]
