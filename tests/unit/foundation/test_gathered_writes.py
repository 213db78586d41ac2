"""Writes of one iteration of the event loop are sent together."""

import asyncio
from typing import Any

import pytest

from caret.foundation.web.write_coalescing import MAX_HELD_BYTES, CoalescingTransport


class Wire(asyncio.Transport):
    """Records the calls, in order."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 5)})
        self.done: list[Any] = []
        self.is_aborted = asyncio.Event()
        self.protocol: asyncio.BaseProtocol = asyncio.Protocol()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.done.append(bytes(data))

    def close(self) -> None:
        self.done.append("close")

    def abort(self) -> None:
        self.done.append("abort")
        self.is_aborted.set()

    def write_eof(self) -> None:
        self.done.append("eof")

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return "close" in self.done

    def is_reading(self) -> bool:
        return "pause" not in self.done

    def pause_reading(self) -> None:
        self.done.append("pause")

    def resume_reading(self) -> None:
        self.done.append("resume")

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.done.append((high, low))

    def get_write_buffer_size(self) -> int:
        return 7

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
async def transport(wire: Wire) -> CoalescingTransport:
    return CoalescingTransport(wire, asyncio.get_running_loop(), close_timeout_s=0.01)


async def test_what_is_written_in_one_turn_is_sent_at_once(
    wire: Wire, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.writelines([b"b", b"c"])
    before = list(wire.done)
    await asyncio.sleep(0)
    transport.write(b"d")
    await asyncio.sleep(0)

    assert (before, wire.done) == ([], [b"abc", b"d"])


async def test_a_large_write_goes_out_at_once_so_that_its_client_can_hold_it_up(
    wire: Wire, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.write(b"x" * MAX_HELD_BYTES)

    assert wire.done == [b"a" + b"x" * MAX_HELD_BYTES]


async def test_a_client_that_does_not_read_the_rest_is_cut_off(
    wire: Wire, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.close()
    await wire.is_aborted.wait()

    assert wire.done == [b"a", "close", "abort"]


async def test_it_closes_behind_what_was_written(
    wire: Wire, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.close()
    await asyncio.sleep(0)

    assert wire.done == [b"a", "close"]
    assert transport.is_closing()


async def test_the_end_comes_behind_what_was_written(
    wire: Wire, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.write_eof()
    await asyncio.sleep(0)

    assert wire.done == [b"a", "eof"]
    assert transport.can_write_eof()


async def test_what_is_aborted_sends_nothing_more(
    wire: Wire, transport: CoalescingTransport
) -> None:
    transport.write(b"a")
    transport.abort()
    await asyncio.sleep(0)

    assert wire.done == ["abort"]


async def test_what_is_held_counts_as_unsent(transport: CoalescingTransport) -> None:
    transport.write(b"abc")

    assert transport.get_write_buffer_size() == 7 + 3


async def test_all_else_is_the_other_transport_s(
    wire: Wire, transport: CoalescingTransport
) -> None:
    protocol = asyncio.Protocol()
    transport.pause_reading()
    transport.resume_reading()
    transport.set_write_buffer_limits(2, 1)
    transport.set_protocol(protocol)

    assert wire.done == ["pause", "resume", (2, 1)]
    assert transport.get_protocol() is wire.protocol is protocol
    assert not transport.is_reading()
    assert transport.get_extra_info("peername") == ("192.0.2.1", 5)
