"""Ten thousand editors on one gateway: the cost of each, and the effect on those that send
requests.

The same 200 requests a second go over 100 connections, and then over 10,000. Then 9,900 of them are
cut at once and reconnect at once, while the load continues over the others. A probe in the
gateway's process reports the lag of its event loop. The engine is the synthetic one.

    python -m tests.benchmarks.idle_connections [--connections 10000] [--seconds 20]

A smoke test: `--connections 300 --seconds 3`.
"""

import argparse
import asyncio
import gc
import itertools
import sys
import time
from collections.abc import Awaitable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Final

import aiohttp
import msgspec
import uvloop

from tests.benchmarks.event_loop_lag import PATH, Stalls
from tests.benchmarks.installation import Home, create_home
from tests.benchmarks.load import Tally, Way, at_rate
from tests.benchmarks.loaded_gateway import Gateway, frame_of, loaded_gateway, new_company
from tests.benchmarks.processes import Cores, Neighbours, divided_cores, memory_mb, pinned_to
from tests.benchmarks.raw_clients import Line, WebSocketLine
from tests.benchmarks.results import Report, machine, percentile, say, spread
from tests.benchmarks.synthetic_engine import synthetic_engine
from tests.benchmarks.typing_developers import typists

MAX_KB_EACH: Final = 40.0
MAX_TIMES_FEW: Final = 2.0
MAX_STALL_MS: Final = 20.0
_NUM_FEW: Final = 100
_RATE: Final = 200.0
_NUM_DEVELOPERS: Final = 500  # keys; each developer has several editors open
_NUM_FILES: Final = 64
_NUM_ADDRESSES: Final = 8  # of the loopback network, since one address has 28,000 ports
_MAX_OPENING: Final = 256
_SPARE_FILES: Final = 512  # for a process's other files
_WARM_UP_S: Final = 3.0
_SETTLE_S: Final = 3.0
_STORM_S: Final = 15.0
_CALM_S: Final = 1.0
_AGAIN_S: Final = 8.0
_PATIENCE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Editors:
    """All connections to one gateway."""

    gateway: Gateway
    few: Way  # stay open throughout
    others: Way  # are closed and opened again

    async def open_others(self) -> float:
        """Open the other connections and return the seconds that it took."""
        began_s = time.perf_counter()
        slots = asyncio.Semaphore(_MAX_OPENING)

        async def open_line(number: int) -> Line:
            async with slots:
                return await self.others.opening(number)

        numbers = range(self.others.num_lines)
        self.others.lines = list(await asyncio.gather(*map(open_line, numbers)))
        self.others.free.extend(numbers)
        return time.perf_counter() - began_s

    def cut_others(self) -> None:
        """Cut the other connections without a closing handshake, as when a network fails."""
        self.others.close()
        self.others.lines.clear()
        self.others.free.clear()

    async def others_are_gone(self) -> float:
        """Return the seconds until the gateway has closed its side.

        Raises TimeoutError.
        """
        began_s = time.perf_counter()
        sockets = Path(f"/proc/{self.gateway.pid}/fd")
        async with asyncio.timeout(_PATIENCE_S):
            # Another process cannot set an event of this one.
            while _num_entries(sockets) > self.few.num_lines + _SPARE_FILES:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return time.perf_counter() - began_s

    async def stalls(self) -> Stalls:
        """Return the event loop's stalls since the last call."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.gateway.url}{PATH}") as response,
        ):
            return msgspec.json.decode(await response.read(), type=Stalls)


def _num_entries(folder: Path) -> int:
    return len(list(folder.iterdir()))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="duration of each load")
    options = parser.parse_args(arguments)
    report = Report("sessions")
    gc.disable()  # of this harness: its pauses would count as the gateway's
    machine()  # before this process is pinned to some of its cores
    _raise_file_limit(options.connections + _SPARE_FILES)
    cores = divided_cores()
    with create_home() as home, pinned_to(cores[1]):
        uvloop.run(_measure(home, cores, options, report))
    return report.exit_status


def _raise_file_limit(num: int) -> None:
    """Raise the limit of open files, which child processes inherit."""
    soft, hard = getrlimit(RLIMIT_NOFILE)
    if soft < num:
        setrlimit(RLIMIT_NOFILE, (num, max(num, hard)))


async def _measure(
    home: Home, cores: tuple[Cores, Cores], options: argparse.Namespace, report: Report
) -> None:
    company = new_company(home, num_developers=_NUM_DEVELOPERS)
    command = (sys.executable, "-m", "tests.benchmarks.event_loop_lag")
    with ExitStack() as stack:
        engine_url = stack.enter_context(synthetic_engine(home, cores=cores[1]))
        gateway = stack.enter_context(
            loaded_gateway(
                home, engine_url=engine_url, company=company, cores=cores, command=command
            )
        )
        editors = _editors(gateway, company.keys, num=options.connections)
        stack.callback(editors.few.close)
        stack.callback(editors.others.close)
        await editors.few.open()
        few = await _load(editors, [(editors.few, _RATE)], (options.seconds, "few"), report)
        await _fill(editors, report)
        all_ways = _shared_out(editors)
        many = await _load(editors, all_ways, (options.seconds, "many"), report)
        ratio = percentile(many.first_ms, 99) / percentile(few.first_ms, 99)
        report.target("first_token.times_few", ratio, "ratio", at_most=MAX_TIMES_FEW)
        await _cut_and_come_back(editors, report)
        await _load(editors, all_ways, (_AGAIN_S, "again"), report)


def _editors(gateway: Gateway, keys: Sequence[str], *, num: int) -> Editors:
    writing = typists(_NUM_FILES)  # enough files for realistic work
    ids = itertools.count()

    def opening(number: int) -> Awaitable[Line]:
        return WebSocketLine.open(
            f"{gateway.url}/v1/stream",
            headers=f"authorization: Bearer {keys[number % len(keys)]}\r\n",
            source=f"127.0.0.{2 + number % _NUM_ADDRESSES}",
        )

    def payload(number: int) -> bytes:
        prefix, suffix = writing[number % len(writing)].type()
        path = f"src/module_{number}.py"  # one file each, so that no request supersedes another
        return frame_of(str(next(ids)), path=path, prefix=prefix, suffix=suffix)

    return Editors(
        gateway,
        few=Way(_NUM_FEW, opening, payload),
        others=Way(
            num - _NUM_FEW,
            lambda number: opening(_NUM_FEW + number),
            lambda number: payload(_NUM_FEW + number),
        ),
    )


def _shared_out(editors: Editors) -> list[tuple[Way, float]]:
    """Share the same load out evenly over all connections."""
    ways = (editors.few, editors.others)
    total = sum(way.num_lines for way in ways)
    return [(way, _RATE * way.num_lines / total) for way in ways]


async def _load(
    editors: Editors,
    ways: Sequence[tuple[Way, float]],
    window: tuple[float, str],
    report: Report,
) -> Tally:
    seconds, name = window
    say(f"{sum(way.num_lines for way, _ in ways)} connections, {_RATE:g} requests a second")
    await at_rate(ways, seconds=_WARM_UP_S)
    await editors.stalls()
    tally, neighbours = Tally(), Neighbours()
    for way_tally in await at_rate(ways, seconds=seconds):
        tally.add(way_tally)
    neighbours.tell(report, f"{name}.neighbours")
    _tell(tally, f"{name}.", report)
    _tell_stalls(await editors.stalls(), f"{name}.", report)
    return tally


def _tell(tally: Tally, prefix: str, report: Report) -> None:
    times = spread(tally.first_ms)
    report.figure(f"{prefix}first_token", times["p99"], "ms p99", **times)
    endings = tally.failures
    num = endings.total() + tally.num_withheld
    report.judged(
        f"{prefix}failed", num, "requests", passed=not num, target="none", endings=endings
    )


def _tell_stalls(stalls: Stalls, prefix: str, report: Report) -> None:
    report.target(
        f"{prefix}stall",
        stalls.max_ms,
        "ms",
        at_most=MAX_STALL_MS,
        busy_ms=round(stalls.max_busy_ms, 1),
        num_over_20_ms=stalls.num_over_20_ms,
    )


async def _fill(editors: Editors, report: Report) -> None:
    before_mb, num = memory_mb(editors.gateway.pid), editors.others.num_lines
    took_s = await editors.open_others()
    report.figure("opened", num / took_s, "connections/s", seconds=round(took_s, 1))
    _tell_stalls(await editors.stalls(), "opened.", report)
    await asyncio.sleep(_SETTLE_S)
    each_kb = (memory_mb(editors.gateway.pid) - before_mb) * 1024 / num
    report.target("memory", each_kb, "KB a connection", at_most=MAX_KB_EACH)


async def _cut_and_come_back(editors: Editors, report: Report) -> None:
    """Cut the other connections and let them reconnect while the few that stay send requests."""
    say(f"{editors.others.num_lines} connections are cut and reconnect")
    asking = asyncio.create_task(at_rate([(editors.few, _RATE)], seconds=_STORM_S))
    await asyncio.sleep(_CALM_S)
    await editors.stalls()
    editors.cut_others()
    report.figure("cut", await editors.others_are_gone(), "s")
    _tell_stalls(await editors.stalls(), "cut.", report)
    await asyncio.sleep(_CALM_S)
    report.figure("back", await editors.open_others(), "s")
    _tell_stalls(await editors.stalls(), "back.", report)
    (tally,) = await asking
    _tell(tally, "storm.", report)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
