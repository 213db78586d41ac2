"""Load on groups of connections: at a fixed rate, whatever the response times, or at full load."""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.benchmarks.raw_clients import Answer, ClientConnection

_TIMEOUT_S: Final = 30.0  # for the responses that are still pending at the end
_ENDINGS: Final = ("stop", "length")  # endings of complete streams


@dataclass(slots=True)
class ConnectionGroup:
    """Connections to one server, and the requests that are sent on them.

    `open_connection` and `next_payload` take the number of the connection.
    """

    num_connections: int
    open_connection: Callable[[int], Awaitable[ClientConnection]]
    next_payload: Callable[[int], bytes]
    connections: list[ClientConnection] = field(default_factory=list)
    free: deque[int] = field(default_factory=deque)  # numbers of connections without a request

    async def open(self) -> None:
        """Open all connections that are not open; servers close idle ones."""
        if not self.connections:
            self.free.extend(random.sample(range(self.num_connections), self.num_connections))
            self.connections = list(
                await asyncio.gather(*map(self.open_connection, range(self.num_connections)))
            )
        for number, connection in enumerate(self.connections):
            if connection.is_lost:
                self.connections[number] = await self.open_connection(number)

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


@dataclass(slots=True)
class Tally:
    first_ms: list[float] = field(default_factory=list)  # of complete responses
    end_ms: list[float] = field(default_factory=list)  # of all responses
    num_complete: int = 0
    failures: Counter[str] = field(default_factory=Counter)  # by ending, see `Answer`
    num_withheld: int = 0  # no connection was free: the load could not be sustained
    num_pending: int = 0
    took_s: float = 0.0

    def send(self, group: ConnectionGroup, number: int, then: Callable[[int], None]) -> None:
        """Send the next request of connection `number`, and count its response.

        Call `then` with the number when the response has ended.
        """

        def on_answer(_connection: ClientConnection, answer: Answer) -> None:
            self.num_pending -= 1
            self._count(answer)
            then(number)

        self.num_pending += 1
        payload = group.next_payload(number)
        group.connections[number].send(payload, on_answer)

    def add(self, other: "Tally") -> None:
        self.first_ms += other.first_ms
        self.end_ms += other.end_ms
        self.num_complete += other.num_complete
        self.failures += other.failures
        self.num_withheld += other.num_withheld

    def _count(self, answer: Answer) -> None:
        self.end_ms.append(answer.end_ms)
        if answer.ending in _ENDINGS and answer.first_ms is not None:
            self.num_complete += 1
            self.first_ms.append(answer.first_ms)
        else:
            self.failures[answer.ending] += 1

    async def settle(self) -> None:
        """Wait until no response is pending.

        Raises TimeoutError.
        """
        async with asyncio.timeout(_TIMEOUT_S):
            while self.num_pending:  # noqa: ASYNC110  # callbacks change it
                await asyncio.sleep(0.005)


async def send_at_rate(
    groups: Sequence[tuple[ConnectionGroup, float]], *, seconds: float
) -> list[Tally]:
    """Send requests on each group at its own rate per second, at random times.

    Return a tally for each group.
    """
    tallies = [Tally() for _ in groups]
    rates = [rate for _, rate in groups]
    began_s = now_s = due_s = time.perf_counter()
    while now_s - began_s < seconds:
        due_s += random.expovariate(sum(rates))
        if (wait_s := due_s - time.perf_counter()) > 0:
            await asyncio.sleep(wait_s)
        (group_index,) = random.choices(range(len(groups)), weights=rates)
        await _send_on_free_connection(groups[group_index][0], tallies[group_index])
        now_s = time.perf_counter()
    for tally in tallies:
        tally.took_s = now_s - began_s
        await tally.settle()
    return tallies


async def _send_on_free_connection(group: ConnectionGroup, tally: Tally) -> None:
    if not group.free:
        tally.num_withheld += 1
        return
    number = group.free.popleft()
    # At a low rate, a connection may be idle for longer than the server allows.
    if group.connections[number].is_lost:
        group.connections[number] = await group.open_connection(number)
    tally.send(group, number, group.free.append)


async def send_at_full_load(group: ConnectionGroup, *, seconds: float) -> Tally:
    """Send the next request on each connection as soon as it is free, for some seconds.

    `num_complete` of the tally counts only the responses that ended within these seconds.
    """
    await group.open()
    tally = Tally()
    ends_s = time.perf_counter() + seconds

    def send_next(number: int) -> None:
        if time.perf_counter() < ends_s and not group.connections[number].is_lost:
            tally.send(group, number, send_next)
        else:
            group.free.append(number)

    began_s = time.perf_counter()
    group.free.clear()
    for number in range(len(group.connections)):
        tally.send(group, number, send_next)
    await asyncio.sleep(seconds)
    num_in_time = tally.num_complete
    tally.took_s = time.perf_counter() - began_s
    await tally.settle()
    tally.num_complete = num_in_time
    return tally
