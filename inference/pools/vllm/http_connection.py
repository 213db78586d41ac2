"""One HTTP/1.1 connection to an engine, reused for several requests.

A request is written in one call. The response is returned as the data lines of its server-sent
events. llhttp, a parser in C, parses the response. Three sizes are limited: the head of a response,
a line, and the lines that were not read yet. At the limit of unread lines, the connection stops
reading, and the engine waits.

    idle --request--> waiting --head--> receiving --end--> idle; closed if the server wants this
      any --lost, malformed, stalled, aborted--> closed
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

import httptools

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_LINE_BYTES: Final = 128 * 1024  # vLLM's longest lines have a few KB
MAX_HELD_BYTES: Final = 256 * 1024  # of the lines that were not read yet
# Minimum time between two returns of `read_lines`. Waking its caller costs as much CPU time as the
# processing of many lines, so the caller is woken less often. The delay is half a frame of a screen
# with 60 Hz, which users do not notice. The first lines and the end of a response are returned at
# once.
PACE_S: Final = 0.008
_DATA: Final = b"data: "
_FIRST_FINAL_STATUS: Final = 200  # lower statuses are informational


class ConnectionFailed(Exception):
    """The connection cannot be used any more."""


class ConnectionLost(ConnectionFailed):
    """The connection was closed, or no data came for too long."""


class MalformedResponse(ConnectionFailed):
    """The response is not valid HTTP, or exceeds a limit."""


class HttpConnection(asyncio.Protocol):
    """A connection for one exchange at a time. Used on one event loop only."""

    def __init__(
        self, *, max_stall_s: float, on_closed: Callable[["HttpConnection"], object]
    ) -> None:
        """`max_stall_s`: the connection fails if no data comes for this time during an exchange."""
        self._loop = asyncio.get_running_loop()
        self._max_stall_s = max_stall_s
        self._on_closed = on_closed
        self._on_end: Callable[[HttpConnection], object] | None = None  # see finish_response
        self._transport: asyncio.Transport
        self._parser: httptools.HttpResponseParser
        self._failure: type[ConnectionFailed] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._last_data_s = 0.0
        self._next_read_s = 0.0  # earliest time of the next read, in the event loop's clock
        self._pace_timer: asyncio.TimerHandle | None = None
        self._is_awaiting_response = False  # the response to a request has not ended
        self._is_paused = False  # does not read from the socket
        self._status: int | None = None  # None: no head yet
        self._num_head_bytes = 0
        self._partial_line: list[bytes] = []  # parts of an incomplete line
        self._num_partial_bytes = 0
        self._lines: list[bytes] = []  # not read yet
        self._num_held_bytes = 0

    @property
    def is_reusable(self) -> bool:
        return self._failure is None and not self._is_awaiting_response and not self._is_paused

    @property
    def has_response_started(self) -> bool:
        """True if any data has come in response to the last request."""
        return self._num_head_bytes > 0

    def send_request(self, request: bytes) -> None:
        """Write a whole request. Requires `is_reusable`."""
        self._parser = httptools.HttpResponseParser(self)
        self._is_awaiting_response, self._status = True, None
        self._num_head_bytes = self._num_partial_bytes = self._num_held_bytes = 0
        self._partial_line, self._lines = [], []
        self._last_data_s = self._loop.time()
        self._next_read_s = 0.0
        self._stall_timer = self._loop.call_later(self._max_stall_s, self._on_stall)
        self._transport.write(request)

    async def read_status(self) -> int:
        """Wait for the head of the response, and return its status. Raises ConnectionFailed."""
        while self._status is None:
            await self._wait_for_data()
        return self._status

    async def read_lines(self) -> list[bytes]:
        """Return the contents of the data lines that have arrived; [] if the response has ended.

        Waits until PACE_S has passed since the last lines were returned, unless the response ends
        before. If the connection fails, the lines that arrived before are returned first. Raises
        ConnectionFailed.
        """
        while not self._lines or self._is_early():
            if not self._is_awaiting_response:
                return []
            await self._wait_for_data()
        lines, self._lines, self._num_held_bytes = self._lines, [], 0
        self._next_read_s = self._loop.time() + PACE_S
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        return lines

    def finish_response(
        self, *, within_s: float, on_end: Callable[["HttpConnection"], object]
    ) -> None:
        """Call `on_end` when the rest of the response has arrived. Its lines are not read any more.

        Close the connection if the rest takes longer than `within_s` seconds. A rest that exceeds
        MAX_HELD_BYTES pauses the connection, so it takes longer. If the connection fails, or has
        failed already, `on_end` is not called.
        """
        if not self._is_awaiting_response:
            on_end(self)
        elif self._failure is None:
            self._on_end = on_end
            self._cancel_stall()
            self._stall_timer = self._loop.call_later(within_s, self._fail_stream, ConnectionLost)

    def abort(self) -> None:
        """Close the connection at once. The engine then aborts a request in flight."""
        self._fail_stream(ConnectionLost)

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is no subclass

    def connection_lost(self, _error: Exception | None) -> None:
        self._fail_stream(ConnectionLost)
        self._on_closed(self)

    def data_received(self, data: bytes) -> None:
        if not self._is_awaiting_response:
            # Data without a request: it could be taken for a part of the next response.
            self._fail_stream(MalformedResponse)
            return
        self._last_data_s = self._loop.time()
        if self._status is None:
            self._num_head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail_stream(MalformedResponse)
        if self._status is None and self._num_head_bytes > MAX_HEAD_BYTES:
            self._fail_stream(MalformedResponse)
        if (
            self._num_held_bytes > MAX_HELD_BYTES
            and not self._is_paused
            and self._is_awaiting_response
        ):
            self._is_paused = True
            self._transport.pause_reading()
        if not self._is_early():
            self._wake_reader()
        elif self._lines and self._pace_timer is None:
            self._pace_timer = self._loop.call_at(self._next_read_s, self._on_pace)

    # Called by the parser.

    def on_message_begin(self) -> None:
        if not self._is_awaiting_response:  # a second response to one request
            self._fail_stream(MalformedResponse)

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= _FIRST_FINAL_STATUS:
            self._status = status

    def on_body(self, body: bytes) -> None:
        if self._failure is not None:
            return
        end = body.rfind(b"\n")
        if end < 0:
            self._keep_partial_line(body)
            return
        self._partial_line.append(body[:end])
        text = b"".join(self._partial_line)
        self._partial_line, self._num_partial_bytes = [], 0
        self._keep_partial_line(body[end + 1 :])
        for line in text.split(b"\n"):
            if len(line) > MAX_LINE_BYTES:
                self._fail_stream(MalformedResponse)
            elif line.startswith(_DATA):
                self._lines.append(line[len(_DATA) :].strip())
                self._num_held_bytes += len(line)

    def on_message_complete(self) -> None:
        if self._status is None or self._failure is not None:
            return  # an informational response before the final one, or no valid response
        self._is_awaiting_response = False
        self._cancel_stall()
        # If the request was not sent completely, its rest would be sent before the next request.
        if not self._parser.should_keep_alive() or self._transport.get_write_buffer_size():
            self._close(ConnectionLost)
        if self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end(self)

    def _keep_partial_line(self, part: bytes) -> None:
        if not part:
            return
        self._partial_line.append(part)
        self._num_partial_bytes += len(part)
        if self._num_partial_bytes > MAX_LINE_BYTES:
            self._fail_stream(MalformedResponse)

    def _is_early(self) -> bool:
        """Return whether a read must wait: PACE_S has not passed, and more data may come."""
        is_open = self._is_awaiting_response and self._failure is None
        return is_open and self._loop.time() < self._next_read_s

    def _on_pace(self) -> None:
        self._pace_timer = None
        self._next_read_s = 0.0  # the timer may fire slightly early
        self._wake_reader()

    def _on_stall(self) -> None:
        """Fail if no data came for `max_stall_s`. Otherwise start the timer again."""
        if self._is_paused:  # the gateway itself does not read
            self._last_data_s = self._loop.time()
        remaining_s = self._last_data_s + self._max_stall_s - self._loop.time()
        if remaining_s > 0:
            self._stall_timer = self._loop.call_later(remaining_s, self._on_stall)
        else:
            self._fail_stream(ConnectionLost)

    async def _wait_for_data(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail_stream(self, failure: type[ConnectionFailed]) -> None:
        """Close the connection. Readers get only the first failure."""
        self._cancel_stall()
        self._close(failure)
        self._wake_reader()

    def _close(self, failure: type[ConnectionFailed]) -> None:
        if self._pace_timer is not None:
            self._pace_timer.cancel()
        if self._failure is None:
            self._failure = failure
            self._transport.abort()

    def _cancel_stall(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
