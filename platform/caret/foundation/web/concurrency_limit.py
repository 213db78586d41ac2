"""Limits how many requests run at once in an application that occupies a thread for each.

A running request has a slot. A request gets its slot after its body was read. A request that waits
for its client to read the response releases the slot after `stall_s`. Such stalled requests still
occupy threads, so their number is limited, too. A request that would exceed this limit ends at
once.

The total size of all request bodies is limited, and so is the total from each client address. The
first `uncounted_bytes` of each body do not count. So small requests are served even when large
bodies have reached the limit.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from caret.foundation.web.body_limit import Application, Receive, Send
from caret.foundation.web.connections import network_of

_SLOW: Final = b'{"status":408,"code":"too_slow","detail":"The body took too long to arrive."}'
_BUSY: Final = b'{"status":503,"code":"busy","detail":"The server is busy. Try again."}'


@dataclass(frozen=True, slots=True)
class ConcurrencyLimits:
    max_requests: int  # running at once in the application
    max_wait_s: float  # of a request for a slot
    max_transfer_s: float  # for the arrival of a whole body
    stall_s: float  # after this, a client that does not read its response loses the slot
    max_stalled: int  # requests that wait for their clients without a slot
    max_held_bytes: int  # total of all bodies
    max_held_bytes_per_address: int  # total from one IPv4 address or IPv6 /64 network
    uncounted_bytes: int  # at the start of each body, not part of these totals


class _AtCapacity(Exception):
    pass


class _TransferTooSlow(Exception):
    pass


class TooManyStalled(Exception):
    """Too many clients do not read their responses.

    This request ends at once, which frees its thread. The other stalled requests end after the
    server's send timeout.
    """


class _RequestSlot:
    """The slot of a request. A stalled request does not hold it."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self.is_held = True

    def release(self) -> None:
        if self.is_held:
            self.is_held = False
            self._slots.release()

    async def acquire(self) -> None:
        await self._slots.acquire()
        self.is_held = True


class ConcurrencyLimitMiddleware:
    def __init__(self, application: Application, limits: ConcurrencyLimits) -> None:
        self._application = application
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.max_requests)
        self._num_held_bytes = 0
        self._held_by_address: Counter[str] = Counter()
        self._num_stalled = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Limit the requests of the wrapped application.

        Raises TooManyStalled.
        """
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        body = _RequestBody(_client_address(scope), self._limits.uncounted_bytes)
        try:
            if not await self._read_body(body, receive):
                return  # the client has disconnected
            async with self._acquire_slot() as slot:
                await self._application(
                    scope, body.make_receive(receive), self._make_stallable_send(send, slot)
                )
        except _TransferTooSlow:
            await _refuse(send, 408, _SLOW)
        except _AtCapacity:
            await _refuse(send, 503, _BUSY)
        finally:
            self._add_held_bytes(body, -body.num_counted_bytes)

    async def _read_body(self, body: "_RequestBody", receive: Receive) -> bool:
        """Read the body; return False if the client disconnected before its end.

        Raises _TransferTooSlow, _AtCapacity.
        """
        try:
            async with asyncio.timeout(self._limits.max_transfer_s):
                while not body.is_whole:
                    event = await receive()
                    if event["type"] == "http.disconnect":
                        return False
                    self._add_held_bytes(body, body.add_event(event))
                    self._check_held_bytes(body)
        except TimeoutError as error:
            raise _TransferTooSlow from error
        return True

    def _add_held_bytes(self, body: "_RequestBody", num_bytes: int) -> None:
        """Add to the totals; `num_bytes` is negative when a body is released."""
        self._num_held_bytes += num_bytes
        self._held_by_address[body.address] += num_bytes
        if not self._held_by_address[body.address]:
            del self._held_by_address[body.address]

    def _check_held_bytes(self, body: "_RequestBody") -> None:
        """Check the limits on body bytes. A body without counted bytes always passes.

        Raises _AtCapacity.
        """
        if not body.num_counted_bytes:
            return
        num_own_bytes = self._held_by_address[body.address]
        is_over = self._num_held_bytes > self._limits.max_held_bytes
        if is_over or num_own_bytes > self._limits.max_held_bytes_per_address:
            raise _AtCapacity

    @asynccontextmanager
    async def _acquire_slot(self) -> AsyncIterator[_RequestSlot]:
        try:
            async with asyncio.timeout(self._limits.max_wait_s):
                await self._slots.acquire()
        except TimeoutError as error:
            raise _AtCapacity from error
        slot = _RequestSlot(self._slots)
        try:
            yield slot
        finally:
            slot.release()

    def _make_stallable_send(self, send: Send, slot: _RequestSlot) -> Send:
        """Wrap `send`: a call that takes longer than `stall_s` releases the slot until its end."""
        loop = asyncio.get_running_loop()

        async def stallable_send(event: Mapping[str, Any]) -> None:
            async with _timeout_raising(TooManyStalled) as timeout:

                def stall() -> None:
                    if self._num_stalled >= self._limits.max_stalled:
                        timeout.reschedule(loop.time())  # at once
                        return
                    self._num_stalled += 1
                    slot.release()

                timer = loop.call_later(self._limits.stall_s, stall)
                try:
                    await send(event)
                finally:
                    timer.cancel()
                    if not slot.is_held:
                        self._num_stalled -= 1
            if not slot.is_held:
                await slot.acquire()

        return stallable_send


@asynccontextmanager
async def _timeout_raising(error: type[Exception]) -> AsyncIterator[asyncio.Timeout]:
    """Yield a timeout without a deadline; the caller sets one with `reschedule`.

    Raises `error` when the time is up. A TimeoutError from within the block is not replaced.
    """
    try:
        async with asyncio.timeout(None) as timeout:
            yield timeout
    except TimeoutError:
        if timeout.expired():
            raise error from None
        raise


class _RequestBody:
    """The body of one request, as far as it was received."""

    def __init__(self, address: str, uncounted_bytes: int) -> None:
        self.address = address
        self._uncounted_bytes = uncounted_bytes
        self._bytes = bytearray()  # not a list: chunks may be single bytes
        self.is_whole = False

    @property
    def num_counted_bytes(self) -> int:
        return max(len(self._bytes) - self._uncounted_bytes, 0)

    def add_event(self, event: Mapping[str, Any]) -> int:
        """Append a chunk; return by how much the counted bytes grew."""
        before = self.num_counted_bytes
        self._bytes += event.get("body", b"")
        self.is_whole = not event.get("more_body", False)
        return self.num_counted_bytes - before

    def make_receive(self, receive: Receive) -> Receive:
        """Return a `receive` function that returns the body once, and then the server's events.

        After the body, the server only reports the disconnect.
        """
        has_returned_body = False

        async def replay() -> Mapping[str, Any]:
            nonlocal has_returned_body
            if has_returned_body:
                return await receive()
            has_returned_body = True
            return {"type": "http.request", "body": bytes(self._bytes), "more_body": False}

        return replay


def _client_address(scope: Mapping[str, Any]) -> str:
    """Return the client's IPv4 address or IPv6 /64 network; "" for a Unix socket.

    Behind a trusted proxy, uvicorn has already replaced the proxy's address with the client's.
    """
    client = scope.get("client")
    return network_of(str(client[0])) if client else ""


async def _refuse(send: Send, status: int, document: bytes) -> None:
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(document)).encode()),
        (b"retry-after", b"5"),  # seconds
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": document, "more_body": False})
