"""How streams grow with gateway processes and engine replicas. Synthetic engines answer at once,
so what limits is gateways, or whoever asks; of real ones, with one gateway before them, it is they.

Everything runs on all cores together, and the processor seconds of each process are told: where all
cores are busy, more processes cannot do more. `most of a gateway's core` is what the same streams
would be with a core for each gateway and others for the rest: reckoned, not seen. First tokens are
those of a moderate rate, at most half of the most, as under full load they are only the queue's.

    python -m tests.benchmarks.scale [--gateways 1 2 4] [--engines 1 2 4] [--real 1 2] [--seconds 4]
        [--real-seconds 20] [--connections 1000]
"""

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import uvloop

from tests.benchmarks.asked import Developers, websocket_way
from tests.benchmarks.figures import Report, percentile, say
from tests.benchmarks.installation import Home, own_home
from tests.benchmarks.load import Way, at_once, at_rate
from tests.benchmarks.loaded_gateway import gateway_program, new_company, redis_of
from tests.benchmarks.programs import Cores, Neighbours, cpu_s, memory_mb, running
from tests.benchmarks.replicas import own_replicas
from tests.benchmarks.synthetic_engine import synthetic_engine_process

MIN_GAIN: Final = 1.8  # from one gateway process to two, where two cores are free for them
_RATE: Final = 100.0  # streams/s, all gateways together, at most


@dataclass(frozen=True, slots=True)
class Fleet:
    gateways: Sequence[tuple[str, int]]  # address and process
    engines: Sequence[int]  # processes
    kind: str  # of the engines

    @property
    def label(self) -> str:
        return f"{len(self.gateways)} gateways, {len(self.engines)} {self.kind} engines"


@dataclass(frozen=True, slots=True)
class Spent:
    """Processor seconds."""

    gateways: tuple[float, ...]
    engines: tuple[float, ...]
    harness: float

    @classmethod
    def so_far(cls, fleet: Fleet) -> "Spent":
        return cls(
            tuple(cpu_s(pid) for _, pid in fleet.gateways),
            tuple(map(cpu_s, fleet.engines)),
            time.process_time(),
        )

    def since(self, before: "Spent") -> "Spent":
        def less(now: tuple[float, ...], then: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(round(a - b, 2) for a, b in zip(now, then, strict=True))

        return Spent(
            less(self.gateways, before.gateways),
            less(self.engines, before.engines),
            round(self.harness - before.harness, 2),
        )


@dataclass(frozen=True, slots=True)
class Engines:
    """Of one kind."""

    kind: str
    started: Callable[[Home, int], AbstractContextManager[list[tuple[str, int]]]]
    seconds: float  # of each measurement
    warm_up_s: float = 1.0
    num_lines: int = 32  # of a gateway: as many editors ask it at once


async def _measure(fleet: Fleet, ways: Sequence[Way], report: Report, *, kind: Engines) -> float:
    """Streams per processor second of the gateways."""
    seconds = kind.seconds
    for way in ways:
        await way.open()
    await asyncio.gather(*(at_once(way, seconds=kind.warm_up_s) for way in ways))
    before = Spent.so_far(fleet)
    tallies = await asyncio.gather(*(at_once(way, seconds=seconds) for way in ways))
    spent = Spent.so_far(fleet).since(before)
    rate = sum(tally.num_whole for tally in tallies) / seconds
    all_s = sum(spent.gateways) + sum(spent.engines) + spent.harness
    report.figure(
        "most",
        rate,
        "streams/s",
        fleet=fleet.label,
        failures=dict(sum((tally.failures for tally in tallies), Counter[str]())),
        cpu_s={"gateways": spent.gateways, "engines": spent.engines, "harness": spent.harness},
        cores_busy=round(all_s / seconds, 2),
    )
    per_core: float = rate * seconds / sum(spent.gateways)
    report.figure("most of a gateway's core", per_core, "streams/s", fleet=fleet.label)
    if rate:
        await _first_tokens(fleet, ways, report, rate=min(_RATE, rate / 2), seconds=seconds)
    return per_core * len(fleet.gateways)


async def _first_tokens(
    fleet: Fleet, ways: Sequence[Way], report: Report, *, rate: float, seconds: float
) -> None:
    for way in ways:
        await way.open()
    tallies = await at_rate([(way, rate / len(ways)) for way in ways], seconds=seconds)
    first_ms = [each for tally in tallies for each in tally.first_ms]
    for percent in (50, 99):
        figure = f"first token p{percent} at {rate:.0f}/s"
        report.figure(figure, percentile(first_ms, percent), "ms", fleet=fleet.label)


async def _connections(fleet: Fleet, keys: Sequence[str], count: int, report: Report) -> None:
    """Idle ones, at each gateway."""
    for url, pid in fleet.gateways[:1]:
        before_mb = memory_mb(pid)
        way = websocket_way(url, [keys[n % len(keys)] for n in range(count)], Developers(1))
        began_s = time.perf_counter()
        await way.open()
        took_s = time.perf_counter() - began_s
        more_kb = (memory_mb(pid) - before_mb) * 1024 / count
        way.close()
        report.figure("connections of a gateway", count, "open", seconds=round(took_s, 2))
        report.figure("memory of a connection", more_kb, "KB")


@contextmanager
def _synthetic(home: Home, count: int) -> Iterator[list[tuple[str, int]]]:
    """Address and process of each."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(synthetic_engine_process(home, cores=_cores(), number=number))
            for number in range(count)
        ]


@contextmanager
def _real(_home: Home, count: int) -> Iterator[list[tuple[str, int]]]:
    """Likewise, of the demonstration model, which have homes of their own."""
    with own_replicas(count) as replicas:
        yield [(replica.url, replica.part.child.pid) for replica in replicas]


def _cores() -> Cores:
    return frozenset(os.sched_getaffinity(0))


def _run(
    home: Home, counts: tuple[int, int], report: Report, *, kind: Engines, connections: int = 0
) -> float:
    cores = _cores()
    num_gateways, num_engines = counts
    with ExitStack() as stack:
        engines = stack.enter_context(kind.started(home, num_engines))
        company = new_company(home, num_developers=kind.num_lines * num_gateways)
        stack.enter_context(redis_of(home, company, cores=cores))
        gateways = []
        for number in range(num_gateways):
            program, url = gateway_program(
                home, [each for each, _ in engines], name=f"gateway-{number}"
            )
            gateways.append((url, stack.enter_context(running(home, program, cores=cores))))
        fleet = Fleet(gateways, [pid for _, pid in engines], kind.kind)
        ways = [
            websocket_way(url, keys, Developers(kind.num_lines))
            for (url, _), keys in zip(gateways, _shares(company.keys, kind.num_lines), strict=True)
        ]
        say(fleet.label)

        async def measure() -> float:
            found = await _measure(fleet, ways, report, kind=kind)
            for way in ways:
                way.close()
            if connections:
                await _connections(fleet, company.keys, connections, report)
            return found

        return uvloop.run(measure())


def _shares(keys: Sequence[str], size: int) -> list[Sequence[str]]:
    return [keys[n : n + size] for n in range(0, len(keys), size)]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gateways", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--engines", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--real", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--real-seconds", type=float, default=20.0)
    parser.add_argument("--connections", type=int, default=1_000)
    options = parser.parse_args(arguments)
    report, neighbours = Report("scale"), Neighbours()
    # One row and one column of the table: engines that answer at once add nothing together.
    wanted = [(n, m) for n in options.gateways for m in options.engines[:1]]
    wanted += [(n, m) for n in options.gateways[:1] for m in options.engines[1:]]
    could = {}
    synthetic = Engines("synthetic", _synthetic, options.seconds)
    for counts in wanted:
        connections = options.connections if counts == (1, 1) else 0
        with own_home() as home:
            could[counts] = _run(home, counts, report, kind=synthetic, connections=connections)
    # A file's first prompt takes such an engine a third of a second, and there are two cores.
    real = Engines("real", _real, options.real_seconds, warm_up_s=10.0, num_lines=4)
    for count in options.real:
        with own_home() as home:
            _run(home, (1, count), report, kind=real)
    one, two = (could.get((n, m)) for n in (1, 2) for m in options.engines[:1] or [1])
    if one and two:
        report.judged(
            "two gateways, a core each, to one",
            two / one,
            "times",
            passed=two / one >= MIN_GAIN,
            target=f"at least {MIN_GAIN}",
        )
    neighbours.tell(report, "neighbours")
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
