"""HTTP and WebSocket clients that use so little CPU time that they do not distort a measurement.

Each is an asyncio protocol that sends one request at a time and reports the response to a callback.
The HTTP client recognizes only the text of the synthetic engine.
"""

import asyncio
import base64
import os
import re
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self, cast
from urllib.parse import urlsplit

from tests.benchmarks.synthetic_engine import TEXTS

_FIRST_TEXT: Final = TEXTS[0].encode()
_CONNECT_S: Final = 30.0
_DELTA: Final = b'{"type":"delta"'
_ENDING: Final = re.compile(rb'^{"type":"(?:done|error)".*?"(?:finish_reason|code)":"(\w+)"')
# A client must mask its frames. A mask of zeros leaves the payload unchanged.
_NO_MASK: Final = bytes(4)
_TEXT_FRAME, _CLOSE_FRAME, _PING_FRAME, _PONG_FRAME = 0x1, 0x8, 0x9, 0xA


@dataclass(frozen=True, slots=True)
class Answer:
    """The times of a response, in ms since just before the request was written."""

    first_ms: float | None  # None: it had no text
    end_ms: float
    ending: str  # finish reason, error code, HTTP status, or "lost" if the connection was closed


class ClientConnection(asyncio.Protocol):
    """A connection. Call `send` again only after the response to the last request was reported."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._opened = asyncio.get_running_loop().create_future()
        self._on_answer: Callable[[ClientConnection, Answer], None] | None = None
        self._sent_s = 0.0
        self._first_ms: float | None = None
        self._is_lost = False

    @property
    def is_lost(self) -> bool:
        """Return True as soon as the connection is closing, even before `connection_lost`."""
        return self._is_lost or self._transport.is_closing()

    @classmethod
    async def open(cls, url: str, *, headers: str = "", source: str | None = None) -> Self:
        """Open a connection.

        `headers` consists of whole lines, each ended by CRLF. Raises OSError, TimeoutError.
        """
        parts = urlsplit(url)
        local = (source, 0) if source else None
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_CONNECT_S):
            _, connection = await loop.create_connection(
                cls, parts.hostname or "", parts.port or 80, local_addr=local
            )
            connection._begin(f"{parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\n{headers}")
            await connection._opened
        return connection

    def send(self, payload: bytes, on_answer: Callable[["ClientConnection", Answer], None]) -> None:
        self._on_answer, self._first_ms = on_answer, None
        self._sent_s = time.perf_counter()
        self._write(payload)

    def close(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        if not self._opened.done():
            self._opened.set_exception(error or ConnectionResetError())
        self._end("lost")

    def _begin(self, target_and_headers: str) -> None:
        raise NotImplementedError

    def _write(self, payload: bytes) -> None:
        raise NotImplementedError

    def _record_first_text(self) -> None:
        if self._first_ms is None:
            self._first_ms = self._ms_since_sent()

    def _end(self, ending: str) -> None:
        if self._on_answer is not None:
            on_answer, self._on_answer = self._on_answer, None
            on_answer(self, Answer(self._first_ms, self._ms_since_sent(), ending))

    def _ms_since_sent(self) -> float:
        return (time.perf_counter() - self._sent_s) * 1000


class HttpConnection(ClientConnection):
    """`POST`s JSON and reads server-sent events in chunks."""

    def _begin(self, target_and_headers: str) -> None:
        self._head = f"POST {target_and_headers}content-type: application/json\r\n".encode()
        self._received = bytearray()
        self._opened.set_result(None)

    def _write(self, payload: bytes) -> None:
        self._received.clear()
        length = b"content-length: %d\r\n\r\n" % len(payload)
        self._transport.write(self._head + length + payload)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._first_ms is None and _FIRST_TEXT in self._received:
            self._record_first_text()
        if self._received.endswith(b"\r\n0\r\n\r\n"):  # the last chunk is empty
            is_whole = self._received.startswith(b"HTTP/1.1 200") and b"[DONE]" in self._received
            self._end("stop" if is_whole else self._status())
        elif b"content-length:" in self._received[:1024].lower():  # an error response, in one piece
            self._end(self._status())

    def _status(self) -> str:
        """Return the status code, which follows "HTTP/1.1 "."""
        return self._received[9:12].decode("latin-1")


class WebSocketConnection(ClientConnection):
    """Speaks `caret.v1`, one completion at a time."""

    def _begin(self, target_and_headers: str) -> None:
        handshake_key = base64.b64encode(os.urandom(16)).decode()
        upgrade = (
            "upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n"
            f"sec-websocket-key: {handshake_key}\r\nsec-websocket-protocol: caret.v1\r\n\r\n"
        )
        self._buffer = b""
        self._transport.write(f"GET {target_and_headers}{upgrade}".encode())

    def _write(self, payload: bytes) -> None:
        # FIN bit and opcode, then mask bit and length (RFC 6455, section 5.2).
        length = len(payload)
        if length < 126:
            head = struct.pack("!BB", 0x80 | _TEXT_FRAME, 0x80 | length)
        elif length < 65_536:
            head = struct.pack("!BBH", 0x80 | _TEXT_FRAME, 0x80 | 126, length)
        else:
            head = struct.pack("!BBQ", 0x80 | _TEXT_FRAME, 0x80 | 127, length)
        self._transport.write(head + _NO_MASK + payload)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._opened.done():
            self._read_upgrade()
            return
        while (frame := self._take_frame()) is not None:
            self._on_frame(*frame)

    def _read_upgrade(self) -> None:
        head, end, self._buffer = self._buffer.partition(b"\r\n\r\n")
        if not end:
            self._buffer = head
        elif b" 101 " in head[:16]:
            self._opened.set_result(None)
        else:
            self._opened.set_exception(ConnectionRefusedError(head[:32].decode()))

    def _take_frame(self) -> tuple[int, bytes] | None:
        """Return the opcode and the payload of the next frame, or None if it is incomplete.

        Frames of the gateway are unfragmented, unmasked and below 64 KB.
        """
        if len(self._buffer) < 4:  # the longest head; every frame that is read is longer
            return None
        length, start = self._buffer[1], 2
        if length == 126:
            length, start = int.from_bytes(self._buffer[2:4], "big"), 4
        if len(self._buffer) < start + length:
            return None
        kind, payload = self._buffer[0] & 0xF, self._buffer[start : start + length]
        self._buffer = self._buffer[start + length :]
        return kind, payload

    def _on_frame(self, kind: int, payload: bytes) -> None:
        if kind == _CLOSE_FRAME:
            self.close()
        elif kind == _PING_FRAME:
            head = struct.pack("!BB", 0x80 | _PONG_FRAME, 0x80 | len(payload))
            self._transport.write(head + _NO_MASK + payload)
        elif kind != _TEXT_FRAME:
            return
        elif self._first_ms is None and payload.startswith(_DELTA):
            self._record_first_text()
        elif (ending := _ENDING.search(payload)) is not None:
            self._end(ending[1].decode())
