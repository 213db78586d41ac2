"""How streams grow with gateway processes and engine replicas. The engines are synthetic: they
answer at once, so what limits is gateways, or whoever asks.

Everything runs on all cores together, and the processor seconds of each process are told: where all
cores are busy, more processes cannot do more. `most of a gateway's core` is what the same streams
would be with a core for each gateway and others for the rest: reckoned, not seen. First tokens are
those of a moderate rate, as under full load they are only the queue's.

    python -m tests.benchmarks.scale [--gateways 1 2 4] [--engines 1 2 4] [--seconds 4]
        [--connections 1000]
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import uvloop

from tests.benchmarks.asked import Developers, websocket_way
from tests.benchmarks.figures import Report, percentile, say
from tests.benchmarks.installation import Home, own_home
from tests.benchmarks.load import Way, at_once, at_rate
from tests.benchmarks.loaded_gateway import gateway_program, new_company, redis_of
from tests.benchmarks.programs import Neighbours, cpu_s, memory_mb, running
from tests.benchmarks.synthetic_engine import synthetic_engine_process

LINES_PER_GATEWAY: Final = 32
MIN_GAIN: Final = 1.8  # from one gateway process to two, where two cores are free for them
_RATE: Final = 100.0  # streams/s, all gateways together
_WARM_UP_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Fleet:
    gateways: Sequence[tuple[str, int]]  # address and process
    engines: Sequence[int]  # processes

    @property
    def label(self) -> str:
        return f"{len(self.gateways)} gateways, {len(self.engines)} engines"


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


async def _measure(
    fleet: Fleet, ways: Sequence[Way], report: Report, options: argparse.Namespace
) -> float:
    """Streams per processor second of the gateways."""
    for way in ways:
        await way.open()
    await asyncio.gather(*(at_once(way, seconds=_WARM_UP_S) for way in ways))
    before = Spent.so_far(fleet)
    tallies = await asyncio.gather(*(at_once(way, seconds=options.seconds) for way in ways))
    spent = Spent.so_far(fleet).since(before)
    rate = sum(tally.num_whole for tally in tallies) / options.seconds
    all_s = sum(spent.gateways) + sum(spent.engines) + spent.harness
    report.figure(
        "most",
        rate,
        "streams/s",
        fleet=fleet.label,
        failures=sum(sum(tally.failures.values()) for tally in tallies),
        cpu_s={"gateways": spent.gateways, "engines": spent.engines, "harness": spent.harness},
        cores_busy=round(all_s / options.seconds, 2),
    )
    per_core: float = rate * options.seconds / sum(spent.gateways)
    report.figure("most of a gateway's core", per_core, "streams/s", fleet=fleet.label)
    await _first_tokens(fleet, ways, report, options.seconds)
    return per_core * len(fleet.gateways)


async def _first_tokens(fleet: Fleet, ways: Sequence[Way], report: Report, seconds: float) -> None:
    for way in ways:
        await way.open()
    tallies = await at_rate([(way, _RATE / len(ways)) for way in ways], seconds=seconds)
    first_ms = [each for tally in tallies for each in tally.first_ms]
    for percent in (50, 99):
        figure = f"first token p{percent} at {_RATE:.0f}/s"
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


def _run(home: Home, counts: tuple[int, int], report: Report, options: argparse.Namespace) -> float:
    cores = frozenset(os.sched_getaffinity(0))
    num_gateways, num_engines = counts
    with ExitStack() as stack:
        engines = [
            stack.enter_context(synthetic_engine_process(home, cores=cores, number=number))
            for number in range(num_engines)
        ]
        company = new_company(home, num_developers=LINES_PER_GATEWAY * num_gateways)
        stack.enter_context(redis_of(home, company, cores=cores))
        gateways = []
        for number in range(num_gateways):
            program, url = gateway_program(
                home, [each for each, _ in engines], name=f"gateway-{number}"
            )
            gateways.append((url, stack.enter_context(running(home, program, cores=cores))))
        fleet = Fleet(gateways, [pid for _, pid in engines])
        ways = [
            websocket_way(url, keys, Developers(LINES_PER_GATEWAY))
            for (url, _), keys in zip(gateways, _shares(company.keys), strict=True)
        ]
        say(fleet.label)

        async def measure() -> float:
            found = await _measure(fleet, ways, report, options)
            for way in ways:
                way.close()
            if counts == (1, 1):
                await _connections(fleet, company.keys, options.connections, report)
            return found

        return uvloop.run(measure())


def _shares(keys: Sequence[str]) -> list[Sequence[str]]:
    return [keys[n : n + LINES_PER_GATEWAY] for n in range(0, len(keys), LINES_PER_GATEWAY)]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gateways", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--engines", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--connections", type=int, default=1_000)
    options = parser.parse_args(arguments)
    report, neighbours = Report("scale"), Neighbours()
    # One row and one column of the table: engines that answer at once add nothing together.
    wanted = [(n, options.engines[0]) for n in options.gateways]
    wanted += [(options.gateways[0], n) for n in options.engines[1:]]
    could = {}
    for counts in wanted:
        with own_home() as home:
            could[counts] = _run(home, counts, report, options)
    one, two = (could.get((n, options.engines[0])) for n in (1, 2))
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
