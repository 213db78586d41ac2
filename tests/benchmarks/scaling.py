"""Scaling: how the number of streams grows with gateway processes and engine replicas.

Synthetic engines answer at once, so the gateways or the clients limit the throughput. With real
engines and one gateway, the engines limit it.

All processes share all cores, and the CPU seconds of each process are reported: when all cores are
busy, more processes cannot do more. `neighbours` is the number of cores that other programs of the
machine use meanwhile. If `--gateways` contains 1 and 2, the gain of a second gateway is measured,
too, on a fleet of its own (`two_gateways.py`).

First-token times are measured at a moderate rate, at most half of the maximum. Under full load,
they would only measure the time that requests wait in a queue.

    python -m tests.benchmarks.scaling [--gateways 1 2 4] [--engines 1 2 4] [--real 1 2]
        [--seconds 4] [--real-seconds 20] [--connections 1000]
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

import uvloop

from tests.benchmarks.gateway_fleet import (
    CpuSeconds,
    EngineKind,
    Fleet,
    fleet_of,
    real_engines,
    synthetic_engines,
)
from tests.benchmarks.installation import create_home
from tests.benchmarks.load import ConnectionGroup, send_at_full_load, send_at_rate
from tests.benchmarks.processes import Neighbours, memory_mb
from tests.benchmarks.results import Report, percentile
from tests.benchmarks.two_gateways import measure_second_gateway
from tests.benchmarks.workload import Developers, websocket_group

_RATE: Final = 100.0  # streams/s, all gateways together, at most


async def _measure(fleet: Fleet, report: Report, *, kind: EngineKind) -> None:
    groups, seconds = fleet.groups, kind.seconds
    for group in groups:
        await group.open()
    await asyncio.gather(*(send_at_full_load(group, seconds=kind.warm_up_s) for group in groups))
    before, neighbours = CpuSeconds.measure(fleet), Neighbours()
    tallies = await asyncio.gather(*(send_at_full_load(group, seconds=seconds) for group in groups))
    cpu_seconds, other_cores = CpuSeconds.measure(fleet).since(before), neighbours.num_cores()
    rate = sum(tally.num_complete for tally in tallies) / seconds
    all_s = sum(cpu_seconds.gateways) + sum(cpu_seconds.engines) + cpu_seconds.harness
    report.figure(
        "maximum throughput",
        rate,
        "streams/s",
        fleet=fleet.label,
        failures=dict(sum((tally.failures for tally in tallies), Counter[str]())),
        cpu_s={
            "gateways": cpu_seconds.gateways,
            "engines": cpu_seconds.engines,
            "harness": cpu_seconds.harness,
        },
        cores_busy=round(all_s / seconds, 2),
        preempted=cpu_seconds.preempted,
        neighbours=round(other_cores, 2),
    )
    per_core: float = rate * seconds / sum(cpu_seconds.gateways)
    report.figure(
        "maximum throughput per core of gateways", per_core, "streams/s", fleet=fleet.label
    )
    if rate:
        await _report_first_tokens(
            fleet, groups, report, rate=min(_RATE, rate / 2), seconds=seconds
        )
    for group in groups:
        group.close()


async def _report_first_tokens(
    fleet: Fleet, groups: Sequence[ConnectionGroup], report: Report, *, rate: float, seconds: float
) -> None:
    for group in groups:
        await group.open()  # opens only connections that the server has closed meanwhile
    tallies = await send_at_rate([(group, rate / len(groups)) for group in groups], seconds=seconds)
    first_ms = [first_token_ms for tally in tallies for first_token_ms in tally.first_ms]
    for percent in (50, 99):
        figure = f"first token p{percent} at {rate:.0f}/s"
        report.figure(figure, percentile(first_ms, percent), "ms", fleet=fleet.label)


async def _measure_idle_connections(
    fleet: Fleet, keys: Sequence[str], count: int, report: Report
) -> None:
    """Report the memory of idle connections to the first gateway, and the time to open them."""
    url, pid = fleet.gateways[0]
    before_mb = memory_mb(pid)
    group = websocket_group(url, [keys[n % len(keys)] for n in range(count)], Developers(1))
    began_s = time.perf_counter()
    await group.open()
    took_s = time.perf_counter() - began_s
    more_kb = (memory_mb(pid) - before_mb) * 1024 / count
    group.close()
    report.figure("connections of a gateway", count, "open", seconds=round(took_s, 2))
    report.figure("memory of a connection", more_kb, "KB")


def _run(
    counts: tuple[int, int], report: Report, *, kind: EngineKind, connections: int = 0
) -> None:
    """Measure a fleet with these numbers of gateways and engines.

    With `connections`, measure that many idle connections, too.
    """

    async def measure(fleet: Fleet) -> None:
        await _measure(fleet, report, kind=kind)
        if connections:
            await _measure_idle_connections(fleet, fleet.keys, connections, report)

    with create_home() as home, fleet_of(home, *counts, kind=kind) as fleet:
        uvloop.run(measure(fleet))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gateways", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--engines", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument(
        "--real", type=int, nargs="*", default=[1, 2], help="numbers of real engines"
    )
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--real-seconds", type=float, default=20.0)
    parser.add_argument(
        "--connections",
        type=int,
        default=1_000,
        help="number of idle connections; measured only with one gateway and one engine",
    )
    options = parser.parse_args(arguments)
    report, synthetic = Report("scale"), synthetic_engines(options.seconds)
    # Not all combinations: engines that answer at once do not add capacity, so their number is
    # varied with one gateway only, and the number of gateways with one engine only.
    sizes = [(n, m) for n in options.gateways for m in options.engines[:1]]
    sizes += [(n, m) for n in options.gateways[:1] for m in options.engines[1:]]
    for counts in sizes:
        connections = options.connections if counts == (1, 1) else 0
        _run(counts, report, kind=synthetic, connections=connections)
    if {1, 2} <= set(options.gateways):
        measure_second_gateway(report, synthetic)
    for count in options.real:
        _run((1, count), report, kind=real_engines(options.real_seconds))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
