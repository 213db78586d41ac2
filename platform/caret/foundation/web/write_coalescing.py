"""Joins the writes to one client in one iteration of the event loop into one system call.

The last text of a completion, its end and the end of the body are three writes. Each system call
that wakes the client takes 100 microseconds of CPU on a virtual machine. The data is hardly
delayed: it is sent as soon as the callbacks that are already scheduled have run.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from caret.foundation.web.connections import ConnectionSlot

MAX_BUFFERED_BYTES: Final = 16 * 1024


class CoalescingTransport(asyncio.Transport):
    """Buffers the writes of one iteration in front of another transport.

    When MAX_BUFFERED_BYTES are buffered, they go to the other transport at once: only that
    transport notices if the client does not read.
    """

    # Not used here. When a connection becomes a WebSocket, the HTTP protocol leaves its slots here
    # for the WebSocket protocol, which releases them at the end. The first slot is that of the
    # connection. If the client came through a trusted proxy, a second one is that of its request.
    slots: list[ConnectionSlot]

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        *,
        close_timeout_s: float,
    ) -> None:
        """`close_timeout_s` is the time that a client has to read the rest after `close`."""
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._close_timeout_s = close_timeout_s
        self._buffers: list[bytes | bytearray | memoryview] = []
        self._num_buffered_bytes = 0
        self.slots = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._buffers:
            self._loop.call_soon(self._send)
        self._buffers.append(data)
        self._num_buffered_bytes += len(data)
        if self._num_buffered_bytes >= MAX_BUFFERED_BYTES:
            self._send()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        for data in list_of_data:
            self.write(data)

    def _send(self) -> None:
        if self._buffers:
            data, self._buffers, self._num_buffered_bytes = b"".join(self._buffers), [], 0
            self._transport.write(data)

    # `close` and `write_eof` send the buffered writes first; `abort` discards them.

    def close(self) -> None:
        self._send()
        self._transport.close()
        # A transport stays open until its client has read everything, which may never happen.
        if self._transport.get_write_buffer_size():
            self._loop.call_later(self._close_timeout_s, self._transport.abort)

    def write_eof(self) -> None:
        self._send()
        self._transport.write_eof()

    def abort(self) -> None:
        self._buffers.clear()
        self._num_buffered_bytes = 0
        self._transport.abort()

    # The other methods are delegated to the other transport.

    def can_write_eof(self) -> bool:
        return self._transport.can_write_eof()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def is_reading(self) -> bool:
        return self._transport.is_reading()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._transport.get_write_buffer_limits()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + self._num_buffered_bytes

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._transport.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._transport.get_protocol()
