"""Load on a set of connections: at a given rate whatever the response times, or at full load."""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.benchmarks.raw_clients import Answer, Line

_PATIENCE_S: Final = 30.0  # for the responses that are still pending at the end
_ENDINGS: Final = ("stop", "length")  # of a complete stream; synthetic engines stop


@dataclass(slots=True)
class Way:
    """Connections to one server and the requests sent on them.

    The callables take the number of the connection.
    """

    num_lines: int
    opening: Callable[[int], Awaitable[Line]]
    next_payload: Callable[[int], bytes]
    lines: list[Line] = field(default_factory=list)
    free: deque[int] = field(default_factory=deque)

    async def open(self) -> None:
        """Open all connections that are not open; servers close idle ones."""
        if not self.lines:
            self.free.extend(random.sample(range(self.num_lines), self.num_lines))
            self.lines = list(await asyncio.gather(*map(self.opening, range(self.num_lines))))
        for number, line in enumerate(self.lines):
            if line.is_lost:
                self.lines[number] = await self.opening(number)

    def close(self) -> None:
        for line in self.lines:
            line.close()


@dataclass(slots=True)
class Tally:
    first_ms: list[float] = field(default_factory=list)
    end_ms: list[float] = field(default_factory=list)
    num_whole: int = 0
    failures: Counter[str] = field(default_factory=Counter)  # by finish reason
    num_withheld: int = 0  # no connection was free: the load could not be sustained
    num_out: int = 0
    took_s: float = 0.0

    def ask(self, way: Way, number: int, then: Callable[[int], None]) -> None:
        def tell(_line: Line, answer: Answer) -> None:
            self.num_out -= 1
            self._note(answer)
            then(number)

        self.num_out += 1
        payload = way.next_payload(number)
        way.lines[number].ask(payload, tell)

    def add(self, other: "Tally") -> None:
        self.first_ms += other.first_ms
        self.end_ms += other.end_ms
        self.num_whole += other.num_whole
        self.failures += other.failures
        self.num_withheld += other.num_withheld

    def _note(self, answer: Answer) -> None:
        self.end_ms.append(answer.end_ms)
        if answer.ending in _ENDINGS and answer.first_ms is not None:
            self.num_whole += 1
            self.first_ms.append(answer.first_ms)
        else:
            self.failures[answer.ending] += 1

    async def settle(self) -> None:
        """Wait until no response is pending.

        Raises TimeoutError.
        """
        async with asyncio.timeout(_PATIENCE_S):
            while self.num_out:  # noqa: ASYNC110  # callbacks change it
                await asyncio.sleep(0.005)


async def at_rate(ways: Sequence[tuple[Way, float]], *, seconds: float) -> list[Tally]:
    """Send requests on each way at its own rate a second, in random turns; return a tally for
    each."""
    tallies = [Tally() for _ in ways]
    rates = [rate for _, rate in ways]
    began_s = now_s = due_s = time.perf_counter()
    while now_s - began_s < seconds:
        due_s += random.expovariate(sum(rates))
        if (wait_s := due_s - time.perf_counter()) > 0:
            await asyncio.sleep(wait_s)
        (way_index,) = random.choices(range(len(ways)), weights=rates)
        await _ask_free(ways[way_index][0], tallies[way_index])
        now_s = time.perf_counter()
    for tally in tallies:
        tally.took_s = now_s - began_s
        await tally.settle()
    return tallies


async def _ask_free(way: Way, tally: Tally) -> None:
    if not way.free:
        tally.num_withheld += 1
        return
    number = way.free.popleft()
    if way.lines[number].is_lost:  # at a low rate it was idle for longer than servers allow
        way.lines[number] = await way.opening(number)
    tally.ask(way, number, way.free.append)


async def at_once(way: Way, *, seconds: float) -> Tally:
    """Send the next request on each connection as soon as it is free; count responses in time."""
    await way.open()
    tally = Tally()
    ends_s = time.perf_counter() + seconds

    def ask_again(number: int) -> None:
        if time.perf_counter() < ends_s and not way.lines[number].is_lost:
            tally.ask(way, number, ask_again)
        else:
            way.free.append(number)

    began_s = time.perf_counter()
    way.free.clear()
    for number in range(len(way.lines)):
        tally.ask(way, number, ask_again)
    await asyncio.sleep(seconds)
    num_in_time = tally.num_whole
    tally.took_s = time.perf_counter() - began_s
    await tally.settle()
    tally.num_whole = num_in_time
    return tally
