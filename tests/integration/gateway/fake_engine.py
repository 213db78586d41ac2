"""A server with vLLM's streaming format, for tests that do not test the engine.

`python -m tests.integration.gateway.fake_engine` prints its port and runs until its standard input
ends. A completion of up to SHORT_TOKENS is sent at once. A longer one gets a token each 2 ms until
`max_tokens`, or until the client disconnects. `GET /streams` returns the number of running
completions, and `GET /v1/models` returns the model of the stack's pools. `GET /fault/NAME` sets the
fault of later completions: a name in `faults.py`, `none`, or one of these:

- `short`: every completion ends after SHORT_TOKENS.
- `held`: a longer completion pauses after HELD_TOKENS until the fault is another one, or until the
  client disconnects. So a test can act while it runs, however slow the machine is.

An unknown fault gets 404. Any other GET request gets an empty response, and any other POST request
gets 404.
"""

import asyncio
import json
import sys
from typing import Final
from urllib.parse import unquote

from tests.integration.gateway.faults import FAULTS, STALLS, send_fault

SHORT_TOKENS: Final = 4
HELD_TOKENS: Final = 16  # enough for a first text that the gateway's filter forwards
_TOKEN_S: Final = 0.002  # between two tokens
_HOLD_POLL_S: Final = 0.01
_NO_FAULTS: Final = ("none", "short", "held")
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_MODELS: Final = b'{"data":[{"id":"demo"}]}'  # as in the stack's pools
_NOT_FOUND: Final = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


class FakeEngine:
    def __init__(self) -> None:
        self.num_streams = 0
        self.fault = "none"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await self._handle_request(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass  # the client has disconnected
        finally:
            writer.close()

    async def _handle_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, path = head.decode().split()[:2]
        if method == "GET":
            writer.write(self._respond_to_get(path))
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        request_body = await reader.readexactly(length)
        if (method, path) != ("POST", "/v1/completions"):
            writer.write(_NOT_FOUND)
            return
        body = json.loads(request_body)
        self.num_streams += 1
        try:
            if self.fault in _NO_FAULTS:
                limit = SHORT_TOKENS if self.fault == "short" else body["max_tokens"]
                await self._stream(reader, writer, max_tokens=limit)
            else:
                await send_fault(self.fault, reader, writer)
        finally:
            self.num_streams -= 1

    def _respond_to_get(self, path: str) -> bytes:
        body = b""
        if path == "/streams":
            body = str(self.num_streams).encode()
        elif path == "/v1/models":
            body = _MODELS
        elif path.startswith("/fault/"):
            fault = unquote(path.removeprefix("/fault/"))
            if fault not in (*_NO_FAULTS, *FAULTS, *STALLS):
                return _NOT_FOUND
            self.fault = fault
        return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)

    async def _stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, max_tokens: int
    ) -> None:
        writer.write(_HEAD)
        for number in range(1, max_tokens + 1):
            if max_tokens > SHORT_TOKENS:
                await asyncio.sleep(_TOKEN_S)
            while self.fault == "held" and number > HELD_TOKENS:
                await asyncio.sleep(_HOLD_POLL_S)
                _check_connection(reader, writer)
            _check_connection(reader, writer)
            is_last = number == max_tokens
            reason = "length" if is_last else None
            choice = {"index": 0, "text": f"t{number} ", "finish_reason": reason}
            usage = {"completion_tokens": number}
            writer.write(_chunk(json.dumps({"choices": [choice], "usage": usage}).encode()))
            await writer.drain()
        usage_at_end = {
            "completion_tokens": max_tokens,
            "prompt_tokens_details": {"cached_tokens": 0},
        }
        writer.write(_chunk(json.dumps({"choices": [], "usage": usage_at_end}).encode()))
        writer.write(_chunk(b"[DONE]") + b"0\r\n\r\n")
        await writer.drain()


def _check_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Raise ConnectionResetError if the client has disconnected."""
    if writer.is_closing() or reader.at_eof():
        raise ConnectionResetError


def _chunk(data: bytes) -> bytes:
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


async def _main() -> None:
    server = await asyncio.start_server(FakeEngine().serve, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.buffer.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_main())
