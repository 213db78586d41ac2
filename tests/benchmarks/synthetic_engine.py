"""An engine that always returns the same completion: the first token at once, then one each
millisecond. So a benchmark measures only the gateway in front of it.

It implements vLLM's streamed `/v1/completions`, and `/health`.

    python -m tests.benchmarks.synthetic_engine PORT
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

import httptools
import uvloop

from tests.benchmarks.installation import Home
from tests.benchmarks.processes import Cores, Program, running
from tests.stack.ports import free_port

MODEL: Final = "demo"
# After an identifier this is Python with balanced brackets, so the filter accepts it.
TEXTS: Final = (
    *("_total", " =", " len", "(", "items", ")", " +", " offset", " *", " 2"),
    *(" -", " (", "start", " or", " 0", ")"),
)
PROMPT_TOKENS: Final = 2_000
CACHED_TOKENS: Final = 1_984
GAP_S: Final = 0.001  # between two tokens, as with a fast engine under low load
_OK: Final = b"HTTP/1.1 200 OK\r\ncontent-type: "
_HEAD: Final = _OK + b"text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"


def _event(texts: list[str], finish_reason: str | None, usage: dict[str, Any]) -> bytes:
    choices = [
        {
            "index": 0,
            "text": text,
            "logprobs": None,
            "finish_reason": finish_reason,
            "stop_reason": None,
        }
        for text in texts
    ]
    event = {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1,
        "model": MODEL,
        "choices": choices,
        "usage": usage,
    }
    return _chunk(b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n")


def _usage(generated: int) -> dict[str, Any]:
    total = PROMPT_TOKENS + generated
    return {
        "prompt_tokens": PROMPT_TOKENS,
        "total_tokens": total,
        "completion_tokens": generated,
    }


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _make_parts() -> Iterator[bytes]:
    """Yield the response in the parts that are sent one after the other: tokens, and the end."""
    last = len(TEXTS)
    for number, text in enumerate(TEXTS, start=1):
        event = _event([text], "stop" if number == last else None, _usage(number))
        yield _HEAD + event if number == 1 else event
    details = {"prompt_tokens_details": {"cached_tokens": CACHED_TOKENS}}
    end = _event([], None, _usage(last) | details) + _chunk(b"data: [DONE]\n\n")
    yield end + b"0\r\n\r\n"


_PARTS: Final = tuple(_make_parts())


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._loop = asyncio.get_running_loop()
        self._url = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._url = b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_message_complete(self) -> None:
        if self._parser.get_method() == b"POST":
            self._send_part(0)
        else:  # health and version checks of clients, which accept this response
            body = b'{"object":"list","data":[{"id":"demo","object":"model"}]}'
            head = b"application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
            self._transport.write(_OK + head + body)

    def _send_part(self, number: int) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(_PARTS[number])
        if number + 1 < len(_PARTS):
            self._loop.call_later(GAP_S, self._send_part, number + 1)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(
        Connection, "127.0.0.1", port, backlog=1024
    )
    async with server:
        await server.serve_forever()


@contextmanager
def synthetic_engine(home: Home, *, cores: Cores) -> Iterator[str]:
    """Run the engine in its own process and yield its URL."""
    with synthetic_engine_process(home, cores=cores) as (url, _):
        yield url


@contextmanager
def synthetic_engine_process(
    home: Home, *, cores: Cores, number: int = 0
) -> Iterator[tuple[str, int]]:
    """Run an engine in its own process and yield its URL and process ID.

    `number` distinguishes several engines.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    program = Program(
        name=f"synthetic-engine-{number}",
        command=(sys.executable, "-m", "tests.benchmarks.synthetic_engine", str(port)),
        ready_url=f"{url}/health",
        environment={},
    )
    with running(home, program, cores=cores) as pid:
        yield url, pid


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
