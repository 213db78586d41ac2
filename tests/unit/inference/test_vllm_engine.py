"""The vLLM adapter, tested against a small server that simulates the faults of an engine."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from inference.completion.generation_options import Sampling
from inference.errors import EngineError
from inference.pools.engine import EngineChunk, EngineStop
from inference.pools.vllm.engine import VllmEngine
from inference.pools.vllm.http_client import HttpClient
from tests.fakes.polling import wait_until
from tests.fakes.pools import make_engine_request

Write = Callable[[bytes], Awaitable[None]]
Behaviour = Callable[["Server", Write], Awaitable[None]]
STALL_S = 0.2


def event(text: str = "", reason: str | None = None, *, generated: int = 1) -> bytes:
    choice = {"index": 0, "text": text, "finish_reason": reason}
    usage = {"prompt_tokens": 3, "completion_tokens": generated}
    return b"data: " + json.dumps({"choices": [choice], "usage": usage}).encode() + b"\n\n"


USAGE = (
    b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,'
    b'"prompt_tokens_details":{"cached_tokens":2}}}\n\n'
)
DONE = b"data: [DONE]\n\n"


class Server:
    """Responds as `behaviour` says, or with an HTTP error. Detects that its client disconnects."""

    def __init__(self, behaviour: Behaviour | None, *, status: int = 200) -> None:
        self.behaviour = behaviour
        self.status = status
        self.url = ""
        self.bodies: list[dict[str, Any]] = []
        self.transports: list[asyncio.BaseTransport | None] = []
        self.has_client_left = asyncio.Event()
        self.step = asyncio.Semaphore(0)  # `_stepwise` waits for it before each part
        self.num_open = 0

    async def respond(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.transports.append(request.transport)
        if self.behaviour is None:
            return web.Response(status=self.status, text='{"error":"customer code"}')
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        self.num_open += 1
        try:
            await self.behaviour(self, response.write)
        except asyncio.CancelledError:
            self.has_client_left.set()
            raise
        finally:
            self.num_open -= 1
        return response

    def drop(self) -> None:
        transport = self.transports[-1]
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


@asynccontextmanager
async def _serving(
    behaviour: Behaviour | None, *, status: int = 200
) -> AsyncIterator[tuple[Server, VllmEngine]]:
    server = Server(behaviour, status=status)
    application = web.Application()
    application.router.add_post("/v1/completions", server.respond)
    # Like an engine, the server cancels a request whose client disconnects.
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with HttpClient(max_stall_s=STALL_S) as client:
            yield server, VllmEngine(client)
    finally:
        await runner.cleanup()


async def _collect(server: Server, engine: VllmEngine, **fields: Any) -> list[EngineChunk]:
    async with engine.complete(make_engine_request(server.url, **fields)) as chunks:
        return [chunk async for chunk in chunks]


async def _failure(behaviour: Behaviour | None, *, status: int = 200) -> EngineError:
    async with _serving(behaviour, status=status) as (server, engine):
        with pytest.raises(EngineError) as exc_info:
            await _collect(server, engine)
    return exc_info.value


def _sending(*parts: bytes) -> Behaviour:
    async def respond(_server: Server, write: Write) -> None:
        for part in parts:
            await write(part)

    return respond


def _hanging(*parts: bytes) -> Behaviour:
    async def respond(_server: Server, write: Write) -> None:
        for part in parts:
            await write(part)
        await asyncio.Event().wait()

    return respond


def _stepwise(*parts: bytes) -> Behaviour:
    async def respond(server: Server, write: Write) -> None:
        for part in parts:
            await server.step.acquire()
            await write(part)

    return respond


PARTS = (event("a"), event("b", "stop", generated=2), USAGE, DONE)
COMPLETE = _sending(*PARTS)


# The request has three prompt tokens and asks for at most eight tokens.
@pytest.mark.parametrize(
    ("count", "generated", "cached"), [(2**70, 8, 3), (-5, 0, 0), (9, 8, 3), (2, 2, 2)]
)
async def test_counts_are_limited_by_the_request(count: int, generated: int, cached: int) -> None:
    usage = USAGE.replace(b'_tokens":2', b'_tokens":%d' % count)  # generated and cached
    async with _serving(_sending(event("a", "stop"), usage, DONE)) as (server, engine):
        chunks = await _collect(server, engine)

    assert (chunks[-1].generated_tokens, chunks[-1].cached_tokens) == (generated, cached)


async def test_a_stream_is_text_then_a_stop_then_the_cached_tokens() -> None:
    collected = []
    async with _serving(_stepwise(*PARTS)) as (server, engine):
        server.step.release()
        async with engine.complete(make_engine_request(server.url)) as chunks:
            async for chunk in chunks:
                collected.append(chunk)
                server.step.release()

    assert collected == [
        EngineChunk("a", 1, None),
        EngineChunk("b", 2, EngineStop.STOP),
        EngineChunk("", 2, EngineStop.STOP, cached_tokens=2),
    ]


async def test_events_that_arrived_together_are_one_chunk() -> None:
    async with _serving(_sending(b"".join(PARTS))) as (server, engine):
        chunks = await _collect(server, engine)

    assert chunks == [EngineChunk("ab", 2, EngineStop.STOP, cached_tokens=2)]


async def test_text_before_an_error_is_returned_first() -> None:
    async with _serving(_sending(event("a") + b"data: nonsense\n\n")) as (server, engine):  # noqa: SIM117  # the address is known inside
        async with engine.complete(make_engine_request(server.url)) as chunks:
            first = await anext(aiter(chunks))
            with pytest.raises(EngineError):
                await anext(aiter(chunks))

    assert first == EngineChunk("a", 1, None)


async def test_the_reason_of_the_stop_is_kept() -> None:
    line = event("b", "stop").replace(b'"stop"', b'"stop", "stop_reason": "\\n"')
    for response, stop in ((event("a", "length"), EngineStop.LENGTH), (line, EngineStop.LINE)):
        async with _serving(_sending(response, DONE)) as (server, engine):
            chunks = await _collect(server, engine)
        assert chunks[-1].stop is stop


async def test_the_engine_gets_exactly_the_expected_fields() -> None:
    async with _serving(COMPLETE) as (server, engine):
        await _collect(server, engine, stop=("\n",), priority=2, max_tokens=9)
        await _collect(server, engine, sampling=Sampling(0.8, 0.95, seed=2))

    greedy_body, sampled_body = server.bodies
    assert greedy_body == {
        "model": "demo",
        "prompt": [1, 2, 3],
        "max_tokens": 9,
        "temperature": 0,
        "stop": ["\n"],
        "stop_token_ids": [0],
        "cache_salt": "0" * 64,
        "priority": 2,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    assert [sampled_body[name] for name in ("temperature", "top_p", "seed")] == [0.8, 0.95, 2]


async def test_the_connection_is_reused_for_the_next_request() -> None:
    async with _serving(COMPLETE) as (server, engine):
        await _collect(server, engine)
        await _collect(server, engine)

    assert server.transports[0] is server.transports[1]


async def test_a_character_split_over_two_packets_is_joined() -> None:
    character = "世".encode()
    data = event("世").replace(b"\\u4e16", character)
    middle = data.index(character) + 1
    async with _serving(_sending(data[:middle], data[middle:], event("", "stop"), DONE)) as (
        server,
        engine,
    ):
        chunks = await _collect(server, engine)

    assert "".join(chunk.text for chunk in chunks) == "世"


async def test_lines_without_data_are_skipped() -> None:
    parts = (b": ping\n\n", event("a", "stop"), b"\n", b"event: x\n", DONE)
    async with _serving(_sending(*parts)) as (server, engine):
        chunks = await _collect(server, engine)

    assert "".join(chunk.text for chunk in chunks) == "a"


@pytest.mark.parametrize(
    ("status", "code", "http_status"),
    [
        (503, "engine_busy", 503),
        (429, "engine_busy", 503),
        (400, "prompt_refused", 400),
        (413, "prompt_refused", 400),
        (422, "prompt_refused", 400),
        (401, "engine_refused", 502),
        (404, "engine_refused", 502),
        (500, "engine_disconnected", 502),
        (502, "engine_disconnected", 502),  # a router whose engine has gone
    ],
)
async def test_an_error_status_is_mapped_to_an_error_code(
    status: int, code: str, http_status: int
) -> None:
    error = await _failure(None, status=status)

    assert (error.code, error.http_status) == (code, http_status)


async def _drop_after_text(server: Server, write: Write) -> None:
    await write(event("a"))
    await asyncio.sleep(0.02)
    server.drop()
    await asyncio.sleep(0)


FAILURES: dict[str, tuple[Behaviour, str]] = {
    "an error event": (
        _sending(b'data: {"error":{"message":"x","code":400}}\n\n'),
        "prompt_refused",
    ),
    "a full queue, reported as an event": (
        _sending(b'data: {"error":{"message":"x","code":503}}\n\n'),
        "engine_busy",
    ),
    "an error in mid-stream": (
        _sending(event("a"), b'data: {"error":"x"}\n\n', DONE),
        "engine_refused",
    ),
    "not JSON": (_sending(b"data: nonsense\n\n"), "engine_invalid_response"),
    "JSON of another shape": (_sending(b'data: {"choices":"many"}\n\n'), "engine_invalid_response"),
    "invalid UTF-8": (
        _sending(b'data: {"choices":[{"text":"\xff"}]}\n\n'),
        "engine_invalid_response",
    ),
    "deep nesting": (_sending(b'data: {"x":' + b"[" * 50_000 + b"\n\n"), "engine_invalid_response"),
    "a line of 1 MB": (_sending(b"data: " + b"x" * 1_000_000 + b"\n\n"), "engine_invalid_response"),
    "an immediate end": (_sending(), "engine_disconnected"),
    "no stop reason": (_sending(event("a")), "engine_disconnected"),
    "done without a stop reason": (_sending(event("a"), USAGE, DONE), "engine_disconnected"),
    "an abort": (_sending(event("a"), event("", "abort"), DONE), "engine_disconnected"),
    "a dropped connection": (_drop_after_text, "engine_disconnected"),
    "silence in mid-stream": (_hanging(event("a")), "engine_disconnected"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_faulty_stream_fails_with_an_error_code(name: str) -> None:
    behaviour, code = FAILURES[name]

    error = await _failure(behaviour)

    assert error.code == code


@pytest.mark.parametrize("name", FAILURES)
async def test_a_faulty_stream_leaves_no_open_response(name: str) -> None:
    behaviour, _ = FAILURES[name]
    async with _serving(behaviour) as (server, engine):
        with pytest.raises(EngineError):
            await _collect(server, engine)

        await wait_until(lambda: server.num_open == 0)


async def test_an_engine_that_never_responds_is_unavailable() -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silence, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, HttpClient(max_stall_s=STALL_S) as client:
        engine = VllmEngine(client)
        with pytest.raises(EngineError) as exc_info:
            async with engine.complete(make_engine_request(f"http://127.0.0.1:{port}")):
                pass

    assert (exc_info.value.code, exc_info.value.http_status) == ("engine_unavailable", 503)


async def test_an_engine_that_does_not_run_is_unavailable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    async with HttpClient(max_stall_s=STALL_S) as client:
        engine = VllmEngine(client)
        with pytest.raises(EngineError) as exc_info:
            async with engine.complete(make_engine_request(url)):
                pass

    assert exc_info.value.code == "engine_unavailable"


async def test_an_idle_connection_closed_by_the_engine_is_no_error() -> None:
    async with _serving(COMPLETE) as (server, engine):
        await _collect(server, engine)
        server.drop()

        chunks = await _collect(server, engine)

    assert "".join(chunk.text for chunk in chunks) == "ab"


async def test_an_error_message_never_quotes_the_engine() -> None:
    error = await _failure(None, status=400)

    assert "customer" not in f"{error} {error.message}"


async def test_leaving_the_context_closes_the_connection_at_once() -> None:
    async with _serving(_hanging(event("a"))) as (server, engine):
        async with engine.complete(make_engine_request(server.url)) as chunks:
            await anext(aiter(chunks))

        async with asyncio.timeout(STALL_S / 2):
            await server.has_client_left.wait()


async def test_leaving_before_the_first_text_closes_the_connection() -> None:
    async with _serving(_hanging()) as (server, engine):
        async with engine.complete(make_engine_request(server.url)):
            pass

        async with asyncio.timeout(STALL_S / 2):
            await server.has_client_left.wait()


async def test_a_cancelled_reader_closes_the_connection() -> None:
    async with _serving(_hanging(event("a"))) as (server, engine):
        task = asyncio.create_task(_collect(server, engine))
        await wait_until(lambda: server.num_open == 1)

        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        async with asyncio.timeout(STALL_S / 2):
            await server.has_client_left.wait()
    assert task.cancelled()


async def test_an_abandoned_response_yields_no_more_chunks() -> None:
    async with _serving(_hanging(event("a"))) as (server, engine):
        async with engine.complete(make_engine_request(server.url)) as chunks:
            await anext(aiter(chunks))

        with pytest.raises(EngineError) as exc_info:
            await anext(aiter(chunks))
        assert exc_info.value.code == "engine_disconnected"
