"""Lets so many requests at once into an application in which each holds a thread.

Places are for work: a body is read before one is taken, and the answer must be taken off our hands
in time. What bodies hold together while they come is bounded, too. Connections are not counted:
an idle one holds nothing but its descriptor.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from caret.foundation.web.body_limit import Application, Receive, Send

_SLOW: Final = b'{"status":408,"code":"too_slow","detail":"The body took too long to arrive."}'
_BUSY: Final = b'{"status":503,"code":"busy","detail":"Too much is going on here. Try again."}'


@dataclass(frozen=True, slots=True)
class Limits:
    max_requests: int  # at once, in the application
    max_wait_s: float  # for a place among them
    max_transfer_s: float  # for a whole body, and for each piece of an answer
    max_held_bytes: int  # of all the bodies that are being read, wait or are worked on


class _Busy(Exception):
    pass


class _TooSlow(Exception):
    pass


class RequestLimit:
    def __init__(self, application: Application, limits: Limits) -> None:
        self._application = application
        self._limits = limits
        self._places = asyncio.Semaphore(limits.max_requests)
        self._num_held_bytes = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Raises TimeoutError for a client that does not read its answer: nothing can be said to
        it any more, and the server closes the connection."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        body = _Body()
        try:
            if not await self._read(body, receive):
                return  # the client has left
            async with self._place():
                await self._application(scope, body.replayed(receive), self._in_time(send))
        except _TooSlow:
            await _refuse(send, 408, _SLOW)
        except _Busy:
            await _refuse(send, 503, _BUSY)
        finally:
            self._num_held_bytes -= body.num_bytes

    async def _read(self, body: "_Body", receive: Receive) -> bool:
        """False when the client left meanwhile. Raises _TooSlow, _Busy."""
        try:
            async with asyncio.timeout(self._limits.max_transfer_s):
                while not body.is_whole:
                    event = await receive()
                    if event["type"] == "http.disconnect":
                        return False
                    self._num_held_bytes += body.add(event)
                    if self._num_held_bytes > self._limits.max_held_bytes:
                        raise _Busy
        except TimeoutError as error:
            raise _TooSlow from error
        return True

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._limits.max_wait_s):
                await self._places.acquire()
        except TimeoutError as error:
            raise _Busy from error
        try:
            yield
        finally:
            self._places.release()

    def _in_time(self, send: Send) -> Send:
        async def bounded(event: Mapping[str, Any]) -> None:
            async with asyncio.timeout(self._limits.max_transfer_s):
                await send(event)

        return bounded


class _Body:
    """What has come of one request's body."""

    def __init__(self) -> None:
        self._bytes = bytearray()  # not a list: pieces may be a byte each
        self.is_whole = False

    @property
    def num_bytes(self) -> int:
        return len(self._bytes)

    def add(self, event: Mapping[str, Any]) -> int:
        """The number of bytes that this added."""
        piece: bytes = event.get("body", b"")
        self._bytes += piece
        self.is_whole = not event.get("more_body", False)
        return len(piece)

    def replayed(self, receive: Receive) -> Receive:
        """Gives the body once, then what the server says next: that the client has left."""
        is_given = False

        async def replay() -> Mapping[str, Any]:
            nonlocal is_given
            if is_given:
                return await receive()
            is_given = True
            return {"type": "http.request", "body": bytes(self._bytes), "more_body": False}

        return replay


async def _refuse(send: Send, status: int, document: bytes) -> None:
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(document)).encode()),
        (b"retry-after", b"5"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": document, "more_body": False})
