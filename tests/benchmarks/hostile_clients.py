"""Hostile clients of an HTTP server, without credentials: the attacks that `hostile_edges` runs.

    python -m tests.benchmarks.hostile_clients ATTACK HOST PORT PATH SECONDS

They run in a separate process, so that they do not delay the client whose responses are timed. All
traffic stays on the loopback network and ends after SECONDS.
"""

import asyncio
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from typing import Final

_MIB: Final = 1024 * 1024
_NUM_ADDRESSES: Final = 8  # so that the server's limit per address does not end the attack
_NUM_SOCKETS: Final = 1_000
_NUM_UNREAD: Final = 200
_LINE_EVERY_S: Final = 4.0


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    port: int
    path: str
    ends_s: float  # monotonic

    def is_over(self) -> bool:
        return time.monotonic() >= self.ends_s

    def unfinished_head(self) -> bytes:
        """Return the head of a request, without the empty line that ends it."""
        return f"GET {self.path} HTTP/1.1\r\nHost: {self.host}\r\n".encode()


# 127.0.0.1 is left to the client whose responses are timed.
_sources: Final = cycle(f"127.0.0.{number}" for number in range(2, 2 + _NUM_ADDRESSES))


async def _connect(target: Target, *, receive_buffer: int = 0) -> socket.socket:
    """Open a connection from the next source address.

    Raises OSError.
    """
    sock = socket.socket()
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.bind((next(_sources), 0))
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, (target.host, target.port))
    except OSError:
        sock.close()
        raise
    return sock


async def endless_header(target: Target) -> None:
    """Send 150 MiB in one header, repeatedly."""
    loop = asyncio.get_running_loop()
    while not target.is_over():
        with suppress(OSError), await _connect(target) as sock:
            await loop.sock_sendall(sock, target.unfinished_head() + b"X: ")
            for _ in range(150):
                await loop.sock_sendall(sock, b"x" * _MIB)


async def many_headers(target: Target) -> None:
    """Send requests with 20,000 headers, repeatedly."""
    loop = asyncio.get_running_loop()
    headers = b"".join(b"X-%d: y\r\n" % i for i in range(20_000))
    head = target.unfinished_head() + headers + b"\r\n"
    while not target.is_over():
        with suppress(OSError), await _connect(target) as sock:
            await loop.sock_sendall(sock, head)
            await loop.sock_recv(sock, 4_096)


async def slow_headers(target: Target) -> None:
    """Keep 1,000 sockets that send a header line every 4 s and reconnect when they are closed."""

    async def send_one() -> None:
        loop = asyncio.get_running_loop()
        while not target.is_over():
            with suppress(OSError), await _connect(target) as sock:
                await loop.sock_sendall(sock, target.unfinished_head())
                while not target.is_over():
                    await asyncio.sleep(_LINE_EVERY_S)
                    await loop.sock_sendall(sock, b"X: y\r\n")
            await asyncio.sleep(_LINE_EVERY_S)

    await asyncio.gather(*(send_one() for _ in range(_NUM_SOCKETS)))


async def unread_answers(target: Target) -> None:
    """Keep 200 sockets that request the largest response and read nothing."""

    async def send_one() -> None:
        loop = asyncio.get_running_loop()
        while not target.is_over():
            with suppress(OSError), await _connect(target, receive_buffer=4_096) as sock:
                # Ten pipelined requests: their responses fill the buffers of both sides.
                await loop.sock_sendall(sock, (target.unfinished_head() + b"\r\n") * 10)
                await asyncio.sleep(max(target.ends_s - time.monotonic(), 0))
            await asyncio.sleep(_LINE_EVERY_S)

    await asyncio.gather(*(send_one() for _ in range(_NUM_UNREAD)))


async def opened_and_left(target: Target) -> None:
    """Open 1,000 sockets and close them immediately, every second."""
    while not target.is_over():
        socks = await asyncio.gather(
            *(_connect(target) for _ in range(_NUM_SOCKETS)), return_exceptions=True
        )
        for sock in socks:
            if isinstance(sock, socket.socket):
                sock.close()
        await asyncio.sleep(1.0)


ATTACKS: Final[dict[str, Callable[[Target], Awaitable[None]]]] = {
    attack.__name__: attack
    for attack in (endless_header, many_headers, slow_headers, unread_answers, opened_and_left)
}


def main(arguments: Sequence[str]) -> int:
    name, host, port, path, seconds = arguments
    target = Target(host, int(port), path, time.monotonic() + float(seconds))

    async def run() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(float(seconds)):
                await ATTACKS[name](target)

    asyncio.run(run())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
