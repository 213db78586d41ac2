"""A transport that sends all writes of one iteration of the event loop together."""

import asyncio
from typing import Any

import pytest

from caret.foundation.web.write_coalescing import MAX_BUFFERED_BYTES, CoalescingTransport

UNSENT_BYTES = 7  # in the buffer of the inner transport


class RecordingTransport(asyncio.Transport):
    """The inner transport, which records its calls in order."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 5)})
        self.calls: list[Any] = []
        self.is_aborted = asyncio.Event()
        self.protocol: asyncio.BaseProtocol = asyncio.Protocol()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.calls.append(bytes(data))

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")
        self.is_aborted.set()

    def write_eof(self) -> None:
        self.calls.append("eof")

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return "close" in self.calls

    def is_reading(self) -> bool:
        """Return False once `pause_reading` was called, even after `resume_reading`."""
        return "pause" not in self.calls

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.calls.append((high, low))

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return (1, 2)

    def get_write_buffer_size(self) -> int:
        return UNSENT_BYTES

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol


@pytest.fixture
def inner_transport() -> RecordingTransport:
    return RecordingTransport()


@pytest.fixture
async def transport(inner_transport: RecordingTransport) -> CoalescingTransport:
    return CoalescingTransport(inner_transport, asyncio.get_running_loop(), close_timeout_s=0.01)


async def test_writes_of_one_iteration_are_sent_together(
    inner_transport: RecordingTransport, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.writelines([b"b", b"c"])
    calls_in_the_same_iteration = list(inner_transport.calls)
    await asyncio.sleep(0)
    transport.write(b"d")
    await asyncio.sleep(0)

    assert calls_in_the_same_iteration == []
    assert inner_transport.calls == [b"abc", b"d"]


async def test_a_large_write_is_sent_immediately(
    inner_transport: RecordingTransport, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.write(b"x" * MAX_BUFFERED_BYTES)

    assert inner_transport.calls == [b"a" + b"x" * MAX_BUFFERED_BYTES]


async def test_a_client_that_does_not_read_the_rest_is_disconnected(
    inner_transport: RecordingTransport, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.close()
    await inner_transport.is_aborted.wait()  # after `close_timeout_s`

    assert inner_transport.calls == [b"a", "close", "abort"]


async def test_closing_sends_pending_writes_first(
    inner_transport: RecordingTransport, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.close()
    await asyncio.sleep(0)

    assert inner_transport.calls == [b"a", "close"]
    assert transport.is_closing()


async def test_the_end_of_file_is_sent_after_pending_writes(
    inner_transport: RecordingTransport, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.write_eof()
    await asyncio.sleep(0)

    assert inner_transport.calls == [b"a", "eof"]
    assert transport.can_write_eof()


async def test_aborting_drops_pending_writes(
    inner_transport: RecordingTransport, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.abort()
    await asyncio.sleep(0)

    assert inner_transport.calls == ["abort"]


async def test_pending_writes_count_as_unsent(transport: CoalescingTransport) -> None:
    transport.write(b"abc")

    assert transport.get_write_buffer_size() == UNSENT_BYTES + len(b"abc")


async def test_other_calls_are_passed_to_the_inner_transport(
    inner_transport: RecordingTransport, transport: CoalescingTransport
) -> None:
    protocol = asyncio.Protocol()

    transport.pause_reading()
    transport.resume_reading()
    transport.set_write_buffer_limits(2, 1)
    transport.set_protocol(protocol)

    assert inner_transport.calls == ["pause", "resume", (2, 1)]
    assert transport.get_protocol() is inner_transport.protocol is protocol
    assert not transport.is_reading()
    assert transport.get_write_buffer_limits() == (1, 2)
    assert transport.get_extra_info("peername") == ("192.0.2.1", 5)
