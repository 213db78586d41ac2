"""The gain of a second gateway process, on two cores that the clients and the engine need as well.

Three ways to share the cores alternate on the same processes, because a machine's speed varies:

    alone    one gateway has a core; its engine and its clients have the other
    crowded  one gateway, its engine and its clients have one core
    both     two gateways, their engine and their clients have two cores

The ratio of `both` to `crowded` is the gain of the second core and the second process: engine and
clients use their share of the cores in both cases. `alone` shows what a stream costs an undisturbed
gateway. The additional cost in `crowded` comes from the processes that share the gateway's core:
they preempt it (`preemptions_per_s`) and replace the content of its CPU caches. The additional cost
in `both` over `crowded` comes from the second gateway.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import uvloop

from tests.benchmarks.gateway_fleet import CpuSeconds, EngineKind, Fleet, fleet_of
from tests.benchmarks.installation import create_home
from tests.benchmarks.load import send_at_full_load
from tests.benchmarks.processes import (
    MAX_NEIGHBOUR_CORES,
    Cores,
    Neighbours,
    move_to,
    split_cores,
)
from tests.benchmarks.results import Report, median, rounded, windows

MIN_GAIN: Final = 1.8
_NUM_ROUNDS: Final = 5
_SETTLE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Sharing:
    name: str
    num_gateways: int
    gateways: Cores
    others: Cores  # of the clients and the engine


@dataclass(slots=True)
class Measurements:
    """The results of one way to share the cores, in the order of the rounds."""

    streams_per_s: list[float] = field(default_factory=list)
    gateway_ms: list[float] = field(default_factory=list)  # CPU time of the gateways for a stream
    preemptions_per_s: list[float] = field(default_factory=list)  # of each gateway
    failures: Counter[str] = field(default_factory=Counter)
    num_neighbour_cores: float = 0.0  # the most cores that unrelated processes used in a round


def measure_second_gateway(report: Report, kind: EngineKind) -> None:
    """Report the gain of a second gateway, and whether it reaches the target.

    Raises SystemExit if there is only one core.
    """
    first_core, other_cores = split_cores()
    all_cores = first_core | other_cores
    alone = Sharing("alone", num_gateways=1, gateways=first_core, others=other_cores)
    crowded = Sharing("crowded", num_gateways=1, gateways=first_core, others=first_core)
    both = Sharing("both", num_gateways=2, gateways=all_cores, others=all_cores)
    with create_home() as home, fleet_of(home, num_gateways=2, num_engines=1, kind=kind) as fleet:
        try:
            measurements = uvloop.run(_rounds(fleet, (alone, crowded, both), kind))
        finally:
            _place(fleet, both)  # give this process all cores back
    for name, measurement in measurements.items():
        report.figure(
            f"streams/s, {name}",
            median(measurement.streams_per_s),
            "streams/s",
            windows=windows(measurement.streams_per_s),  # one for each round
            gateway_cpu_ms=rounded(median(measurement.gateway_ms)),
            preemptions_per_s=rounded(median(measurement.preemptions_per_s)),
            failures=dict(measurement.failures),
            neighbours=round(measurement.num_neighbour_cores, 2),
        )
    gains = _ratios(measurements["both"].streams_per_s, measurements["crowded"].streams_per_s)
    report.judged(
        "streams/s of two gateways on two cores, relative to one gateway on one core",
        median(gains),
        "times",
        passed=median(gains) >= MIN_GAIN,
        target=f"at least {MIN_GAIN}",
        windows=windows(gains),
        is_quiet=max(measurement.num_neighbour_cores for measurement in measurements.values())
        <= MAX_NEIGHBOUR_CORES,
    )
    for name in ("crowded", "both"):
        cost_ratios = _ratios(measurements[name].gateway_ms, measurements["alone"].gateway_ms)
        report.figure(
            f"a gateway's CPU time for a stream, {name} to alone",
            median(cost_ratios),
            "times",
            windows=windows(cost_ratios),
        )


async def _rounds(
    fleet: Fleet, sharings: Sequence[Sharing], kind: EngineKind
) -> dict[str, Measurements]:
    for group in fleet.groups:
        await group.open()
    await asyncio.gather(
        *(send_at_full_load(group, seconds=kind.warm_up_s) for group in fleet.groups)
    )
    measurements = {sharing.name: Measurements() for sharing in sharings}
    for _ in range(_NUM_ROUNDS):
        for sharing in sharings:
            _place(fleet, sharing)
            # The first moments after the change are not counted.
            await _load(fleet, sharing, seconds=_SETTLE_S, measurement=Measurements())
            await _load(
                fleet, sharing, seconds=kind.seconds, measurement=measurements[sharing.name]
            )
    for group in fleet.groups:
        group.close()
    return measurements


async def _load(
    fleet: Fleet, sharing: Sharing, *, seconds: float, measurement: Measurements
) -> None:
    groups = fleet.groups[: sharing.num_gateways]
    before, neighbours = CpuSeconds.measure(fleet), Neighbours()
    tallies = await asyncio.gather(*(send_at_full_load(group, seconds=seconds) for group in groups))
    cpu_seconds = CpuSeconds.measure(fleet).since(before)
    num_complete = sum(tally.num_complete for tally in tallies)
    if not num_complete:
        failures = [dict(tally.failures) for tally in tallies]
        raise SystemExit(f"{sharing.name}: no responses: {failures}")
    gateways = slice(sharing.num_gateways)
    measurement.streams_per_s.append(num_complete / seconds)
    measurement.gateway_ms.append(sum(cpu_seconds.gateways[gateways]) / num_complete * 1000)
    measurement.preemptions_per_s.append(
        sum(cpu_seconds.preempted[gateways]) / sharing.num_gateways / seconds
    )
    measurement.num_neighbour_cores = max(measurement.num_neighbour_cores, neighbours.num_cores())
    for tally in tallies:
        measurement.failures.update(tally.failures)


def _place(fleet: Fleet, sharing: Sharing) -> None:
    # First all child processes of this one, idle gateways too, and then the gateways in use.
    move_to(sharing.others, os.getpid())
    for _, pid in fleet.gateways[: sharing.num_gateways]:
        move_to(sharing.gateways, pid)


def _ratios(dividends: Sequence[float], divisors: Sequence[float]) -> list[float]:
    """Return the ratio of each round.

    The machine's speed is about the same for both measurements of a round.
    """
    return [a / b for a, b in zip(dividends, divisors, strict=True)]
