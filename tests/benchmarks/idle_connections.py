"""Ten thousand editors on one gateway: the memory of each connection, and the delay of requests.

The same 200 requests a second are sent over 100 connections, and then over 10,000. Then 9,900 of
the connections are cut at once, and reconnect a second after the gateway has closed its side. Until
they are connected again, the load continues over the remaining 100. A probe in the gateway's
process reports the lag of its event loop. The engine is the synthetic one
(`tests.benchmarks.synthetic_engine`).

    python -m tests.benchmarks.idle_connections [--connections 10000] [--seconds 20]

To check only that the benchmark runs: `--connections 300 --seconds 3`.
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
from tests.benchmarks.load import ConnectionGroup, Tally, send_at_rate
from tests.benchmarks.loaded_gateway import Gateway, frame_of, loaded_gateway, new_company
from tests.benchmarks.processes import Cores, Neighbours, memory_mb, pinned_to, split_cores
from tests.benchmarks.raw_clients import ClientConnection, WebSocketConnection
from tests.benchmarks.results import Report, machine, percentile, say, spread
from tests.benchmarks.synthetic_engine import synthetic_engine
from tests.benchmarks.typing_developers import typists

MAX_KB_EACH: Final = 40.0
MAX_TIMES_FEW: Final = 2.0  # first-token p99 with all connections, as a multiple of that with few
MAX_STALL_MS: Final = 20.0
_NUM_FEW: Final = 100
_RATE: Final = 200.0
_NUM_DEVELOPERS: Final = 500  # each has one API key, which all of their editors use
_NUM_FILES: Final = 64
# Of the loopback network. One address has 28,000 ports, and the ports of cut connections stay
# occupied for a minute. This is enough for 10,000 connections, but not for many more.
_NUM_ADDRESSES: Final = 8
_MAX_OPENING: Final = 256  # connections that are being opened at the same time
_SPARE_FILES: Final = 512  # open files of a process that are not connections
_WARM_UP_S: Final = 3.0
_SETTLE_S: Final = 3.0
# Duration of the load while connections are cut and reconnect; repeated until all are connected.
_STORM_S: Final = 15.0
_CALM_S: Final = 1.0  # before connections are cut, and before they reconnect
_AFTER_RECONNECT_S: Final = 8.0  # duration of the load once all are connected again
_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Editors:
    """All connections to one gateway."""

    gateway: Gateway
    few: ConnectionGroup  # 100 connections, which stay open throughout
    others: ConnectionGroup  # all other connections, which are cut and opened again

    async def open_others(self) -> float:
        """Open the other connections and return the seconds that it took."""
        began_s = time.perf_counter()
        slots = asyncio.Semaphore(_MAX_OPENING)

        async def open_in_slot(number: int) -> ClientConnection:
            async with slots:
                return await self.others.open_connection(number)

        numbers = range(self.others.num_connections)
        self.others.connections = list(await asyncio.gather(*map(open_in_slot, numbers)))
        self.others.free.extend(numbers)
        return time.perf_counter() - began_s

    def cut_others(self) -> None:
        """Cut the other connections without a closing handshake, as when a network fails."""
        self.others.close()
        self.others.connections.clear()
        self.others.free.clear()

    async def await_others_closed(self) -> float:
        """Return the seconds until the gateway has closed its side.

        The gateway's files are counted, and it has other open files, too. So a few connections may
        still be open then, fewer than _SPARE_FILES. Raises TimeoutError.
        """
        began_s = time.perf_counter()
        sockets = Path(f"/proc/{self.gateway.pid}/fd")
        async with asyncio.timeout(_TIMEOUT_S):
            # The gateway is another process, so there is no event to wait for.
            max_files = self.few.num_connections + _SPARE_FILES
            while _num_entries(sockets) > max_files:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return time.perf_counter() - began_s

    async def fetch_stalls(self) -> Stalls:
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
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="duration of each of the first two loads"
    )
    options = parser.parse_args(arguments)
    if options.connections <= _NUM_FEW:
        parser.error(f"--connections must be above {_NUM_FEW}.")
    report = Report("sessions")  # the name in recorded results: a connection was a session once
    gc.disable()  # of this harness: its pauses would count as the gateway's
    machine()  # is cached: counts the cores before this process is pinned to some of them
    _raise_file_limit(options.connections + _SPARE_FILES)
    gateway_cores, other_cores = split_cores()
    with create_home() as home, pinned_to(other_cores):
        uvloop.run(_measure(home, (gateway_cores, other_cores), options, report))
    return report.exit_status


def _raise_file_limit(num: int) -> None:
    """Raise the limit of open files, which child processes inherit."""
    soft, hard = getrlimit(RLIMIT_NOFILE)
    if soft < num:
        setrlimit(RLIMIT_NOFILE, (num, max(num, hard)))


async def _measure(
    home: Home, cores: tuple[Cores, Cores], options: argparse.Namespace, report: Report
) -> None:
    """Measure the loads. `cores` are those of the gateway, and those of the engine and clients."""
    company = new_company(home, num_developers=_NUM_DEVELOPERS)
    command = (sys.executable, "-m", "tests.benchmarks.event_loop_lag")
    _, other_cores = cores
    with ExitStack() as stack:
        engine_url = stack.enter_context(synthetic_engine(home, cores=other_cores))
        gateway = stack.enter_context(
            loaded_gateway(
                home, engine_url=engine_url, company=company, cores=cores, command=command
            )
        )
        editors = _editors(gateway, company.keys, num=options.connections)
        stack.callback(editors.few.close)
        stack.callback(editors.others.close)
        await editors.few.open()
        seconds = options.seconds
        few = await _load(editors, [(editors.few, _RATE)], report, name="few", seconds=seconds)
        await _open_others(editors, report)
        all_groups = _divide_load(editors)
        many = await _load(editors, all_groups, report, name="many", seconds=seconds)
        ratio = percentile(many.first_ms, 99) / percentile(few.first_ms, 99)
        report.target("first_token.times_few", ratio, "ratio", at_most=MAX_TIMES_FEW)
        await _cut_and_reconnect(editors, report)
        await _load(editors, all_groups, report, name="again", seconds=_AFTER_RECONNECT_S)


def _editors(gateway: Gateway, keys: Sequence[str], *, num: int) -> Editors:
    writing = typists(_NUM_FILES)  # enough files for realistic work
    ids = itertools.count()

    def open_connection(number: int) -> Awaitable[ClientConnection]:
        return WebSocketConnection.open(
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
        few=ConnectionGroup(_NUM_FEW, open_connection, payload),
        others=ConnectionGroup(
            num - _NUM_FEW,
            lambda number: open_connection(_NUM_FEW + number),
            lambda number: payload(_NUM_FEW + number),
        ),
    )


def _divide_load(editors: Editors) -> list[tuple[ConnectionGroup, float]]:
    """Share the same load out evenly over all connections."""
    groups = (editors.few, editors.others)
    total = sum(group.num_connections for group in groups)
    return [(group, _RATE * group.num_connections / total) for group in groups]


async def _load(
    editors: Editors,
    groups: Sequence[tuple[ConnectionGroup, float]],
    report: Report,
    *,
    name: str,
    seconds: float,
) -> Tally:
    num_connections = sum(group.num_connections for group, _ in groups)
    say(f"{num_connections} connections, {_RATE:g} requests a second")
    await send_at_rate(groups, seconds=_WARM_UP_S)
    await editors.fetch_stalls()  # discards the stalls so far
    tally = Tally()
    neighbours = Neighbours()  # measures other processes from here on
    for group_tally in await send_at_rate(groups, seconds=seconds):
        tally.add(group_tally)
    neighbours.report(report, f"{name}.neighbours")
    _report_results(tally, f"{name}.", report)
    _report_stalls(await editors.fetch_stalls(), f"{name}.", report)
    return tally


def _report_results(tally: Tally, prefix: str, report: Report) -> None:
    times = spread(tally.first_ms)
    report.figure(f"{prefix}first_token", times["p99"], "ms p99", **times)
    # Requests that were not sent, because no connection was free, count as failed.
    num = tally.failures.total() + tally.num_withheld
    report.judged(
        f"{prefix}failed", num, "requests", passed=not num, target="none", endings=tally.failures
    )


def _report_stalls(stalls: Stalls, prefix: str, report: Report) -> None:
    report.target(
        f"{prefix}stall",
        stalls.max_ms,
        "ms",
        at_most=MAX_STALL_MS,
        busy_ms=round(stalls.max_busy_ms, 1),
        num_over_20_ms=stalls.num_over_20_ms,
    )


async def _open_others(editors: Editors, report: Report) -> None:
    before_mb, num = memory_mb(editors.gateway.pid), editors.others.num_connections
    duration_s = await editors.open_others()
    report.figure("opened", num / duration_s, "connections/s", seconds=round(duration_s, 1))
    _report_stalls(await editors.fetch_stalls(), "opened.", report)
    await asyncio.sleep(_SETTLE_S)
    each_kb = (memory_mb(editors.gateway.pid) - before_mb) * 1024 / num
    report.target("memory", each_kb, "KB a connection", at_most=MAX_KB_EACH)


async def _cut_and_reconnect(editors: Editors, report: Report) -> None:
    """Cut the other connections and let them reconnect while the few that stay send requests."""
    say(f"{editors.others.num_connections} connections are cut and reconnect")
    are_reconnected = asyncio.Event()
    load = asyncio.create_task(_send_until(are_reconnected, editors))
    await asyncio.sleep(_CALM_S)
    await editors.fetch_stalls()  # discards the stalls so far
    editors.cut_others()
    report.figure("cut", await editors.await_others_closed(), "s")
    _report_stalls(await editors.fetch_stalls(), "cut.", report)
    await asyncio.sleep(_CALM_S)
    report.figure("back", await editors.open_others(), "s")
    are_reconnected.set()
    _report_stalls(await editors.fetch_stalls(), "back.", report)
    _report_results(await load, "storm.", report)


async def _send_until(ended: asyncio.Event, editors: Editors) -> Tally:
    """Send requests over the few connections for _STORM_S, and again until `ended` is set."""
    tally = Tally()
    while True:
        (round_tally,) = await send_at_rate([(editors.few, _RATE)], seconds=_STORM_S)
        tally.add(round_tally)
        if ended.is_set():
            return tally


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
