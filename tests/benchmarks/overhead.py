"""The overhead of gateways in front of an engine that answers at once: Caret's gateway, LiteLLM's
proxy and vLLM's router.

Each gateway runs alone on one core. The engine, Redis and this harness have the other cores.

Caret's gateway runs its full pipeline: authentication, limits, assembly of a 2,000-token prompt,
filter and record. Each request is one typed character after the one before. `cold` requests are for
a file that was never seen. The rivals get a text of as many tokens and forward it. At a rate,
direct requests to the engine alternate with the others in random turns. "Added" is the difference
of two quantiles of the same window. The windows of all contenders alternate; results are medians
over the rounds.

CPU per request is judged at full load, because its target was set there: the router's 0.24 ms
correspond to the 4,154 streams/s of its one core. CPU per request at a rate is reported beside it.
The same work costs more there, on every gateway (`machine.bursts`: the CPU time of fixed work at
200/s on the gateway's core, as a multiple of its CPU time when busy).

The targets were set on one machine, and depend on it as much as on the gateway. So if vLLM's router
was measured, the results are also reported as multiples of the router's, from the same windows and
on the same cores. Their targets are multiples of the router's results on the first machine. This
cancels the speed of the machine; what remains is the difference between the gateways. Both are
judged separately: a target missed in milliseconds stays missed, whatever its multiple is.

    python -m tests.benchmarks.overhead [--rounds 3] [--without litellm vllm-router]
"""

import argparse
import asyncio
import gc
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import uvloop

from caret.contracts.usage import FinishReason
from tests.benchmarks.competitors import LITELLM, VLLM_ROUTER, NotMeasured, Rival, rival_running
from tests.benchmarks.cpu_wakeup import tell_bursts
from tests.benchmarks.installation import Home, create_home
from tests.benchmarks.load import Tally, Way, at_once, at_rate
from tests.benchmarks.loaded_gateway import Gateway, loaded_gateway, new_company
from tests.benchmarks.processes import Cores, cpu_s, divided_cores, memory_mb, pinned_to
from tests.benchmarks.results import Report, machine, median, percentile, rounded, say, windows
from tests.benchmarks.synthetic_engine import synthetic_engine
from tests.benchmarks.workload import (
    Developers,
    NewFiles,
    engine_way,
    http_way,
    rival_way,
    websocket_way,
)

MAX_ADDED_P50_MS: Final = 1.5
MAX_ADDED_P99_MS: Final = 5.0
MAX_CPU_MS: Final = 1.6
MAX_COLD_CPU_MS: Final = 4.0
MIN_TIMES_LITELLM: Final = 15.0
NUM_LINES: Final = 64
# a response takes 17 ms: with fewer connections, they would be the limit
_DIRECT_LINES: Final = 256
_RATE: Final = 200.0
_DIRECT_RATE: Final = 50.0  # beside the load
_LITELLM_RATE: Final = 8.0  # LiteLLM cannot sustain much more
_COLD_RATE: Final = 40.0
_AT_RATE_S: Final = 6.0
_AT_ONCE_S: Final = 4.0
_LITELLM_AT_ONCE_S: Final = 12.0  # seconds pass before the first of 64 gets a response
_WARM_UP_S: Final = 1.5
# for a window and for its warm-up: there are not enough new files for more
_COLD_AT_ONCE_S: Final = 1.5
_MAX_COLD_RATE: Final = 700.0  # at full load


_UNITS: Final = {
    **dict.fromkeys(("first_p50", "first_p99", "added_p50", "added_p99"), "ms"),
    **dict.fromkeys(("cpu_ms", "max_cpu_ms"), "ms a request"),
    "max": "streams/s a core",
    "memory": "MB",
}
_WARM: Final = {
    "added_p50": MAX_ADDED_P50_MS,
    "added_p99": MAX_ADDED_P99_MS,
    "max_cpu_ms": MAX_CPU_MS,
}
_TARGETS: Final[dict[str, dict[str, float]]] = {
    "websocket": _WARM,
    "http": _WARM,
    "cold": {"max_cpu_ms": MAX_COLD_CPU_MS},
}
# vLLM's router on the machine on which the targets were set: at _RATE, and at full load.
_ROUTER_THERE: Final = {"added_p50": 0.23, "added_p99": 0.37, "max_cpu_ms": 0.24}


@dataclass(frozen=True, slots=True)
class Contender:
    """Connections through a gateway, and that gateway's process."""

    name: str
    way: Way
    pid: int
    rate: float = _RATE
    # full load: warm-up, and measured time
    at_once_s: tuple[float, float] = (_WARM_UP_S, _AT_ONCE_S)


@dataclass(slots=True)
class Measurements:
    """The results of one contender, with a value for each window."""

    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    num: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    num_withheld: int = 0

    def add(self, **values: float) -> None:
        for name, value in values.items():
            self.values[name].append(value)

    def count(self, tally: Tally) -> None:
        self.num += tally.num_whole
        self.failures += tally.failures
        self.num_withheld += tally.num_withheld


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], help="litellm, vllm-router")
    options = parser.parse_args(arguments)
    report = Report("overhead")
    gc.disable()  # of this harness: its pauses would count as the gateways'
    machine()  # before this process is pinned to some of its cores
    our_cores, other_cores = divided_cores()
    tell_bursts(report, cores=our_cores)
    with create_home() as home, pinned_to(other_cores):
        uvloop.run(_compare(home, (our_cores, other_cores), options, report))
    return report.exit_status


async def _compare(
    home: Home, cores: tuple[Cores, Cores], options: argparse.Namespace, report: Report
) -> None:
    company = new_company(home, num_developers=NUM_LINES)
    with ExitStack() as stack:
        engine_url = stack.enter_context(synthetic_engine(home, cores=cores[1]))
        gateway = stack.enter_context(
            loaded_gateway(home, engine_url=engine_url, company=company, cores=cores)
        )
        direct = _closed_by(stack, engine_way(engine_url, num_lines=_DIRECT_LINES))
        contenders = _caret_contenders(stack, gateway, company.keys, num_rounds=options.rounds)
        for rival in (VLLM_ROUTER, LITELLM):
            if rival.name not in options.without:
                contenders += _rival(stack, (rival, home, engine_url, cores[0]), report)
        measurements = {contender.name: Measurements() for contender in contenders}
        await _tell_ceiling(direct, report)
        for number in range(options.rounds):
            for contender in contenders:
                say(f"round {number + 1} of {options.rounds}: {contender.name}")
                await _one_round(contender, direct, measurements[contender.name])
        for contender in contenders:
            _tell(contender, measurements[contender.name], report)
        _tell_ratios(measurements, report)
        if VLLM_ROUTER.name in measurements:
            _tell_multiples(measurements, measurements[VLLM_ROUTER.name], report)


def _closed_by(stack: ExitStack, way: Way) -> Way:
    stack.callback(way.close)
    return way


def _caret_contenders(
    stack: ExitStack, gateway: Gateway, keys: Sequence[str], *, num_rounds: int
) -> list[Contender]:
    url, pid = gateway.url, gateway.pid
    developers = Developers(NUM_LINES)
    num_new = _COLD_RATE * (_WARM_UP_S + _AT_RATE_S) + _MAX_COLD_RATE * 2 * _COLD_AT_ONCE_S
    new_files = NewFiles(int(num_rounds * num_new))
    websocket = _closed_by(stack, websocket_way(url, keys, developers))
    http = _closed_by(stack, http_way(url, keys, developers))
    cold = _closed_by(stack, websocket_way(url, keys, new_files))
    return [
        Contender("websocket", websocket, pid),
        Contender("http", http, pid),
        Contender("cold", cold, pid, rate=_COLD_RATE, at_once_s=(_COLD_AT_ONCE_S, _COLD_AT_ONCE_S)),
    ]


def _rival(stack: ExitStack, of: tuple[Rival, Home, str, Cores], report: Report) -> list[Contender]:
    rival, home, engine_url, cores = of
    try:
        context = rival_running(rival, home, engine_url=engine_url, cores=cores)
        server = stack.enter_context(context)
    except NotMeasured as reason:
        report.figure(f"{rival.name}.measured", 0, "bool", reason=str(reason))
        return []
    report.figure(f"{rival.name}.measured", 1, "bool", version=server.version)
    way = _closed_by(stack, rival_way(server.url, num_lines=NUM_LINES))
    if rival is LITELLM:
        at_once_s = (_WARM_UP_S, _LITELLM_AT_ONCE_S)
        return [Contender(rival.name, way, server.pid, rate=_LITELLM_RATE, at_once_s=at_once_s)]
    return [Contender(rival.name, way, server.pid)]


async def _tell_ceiling(direct: Way, report: Report) -> None:
    """Report how much the engine and this harness sustain without a gateway."""
    await direct.open()
    await at_once(direct, seconds=_WARM_UP_S)
    tally = await at_once(direct, seconds=_AT_ONCE_S)
    report.figure("direct.max", tally.num_whole / tally.took_s, "streams/s")


async def _one_round(contender: Contender, direct: Way, measurement: Measurements) -> None:
    await asyncio.gather(contender.way.open(), direct.open())
    await at_rate([(contender.way, contender.rate)], seconds=_WARM_UP_S)
    before_s = cpu_s(contender.pid)
    through, straight = await at_rate(
        [(contender.way, contender.rate), (direct, _DIRECT_RATE)], seconds=_AT_RATE_S
    )
    measurement.count(through)
    if not (through.first_ms and straight.first_ms):
        raise SystemExit(f"{contender.name} returned no response: {dict(measurement.failures)}")
    measurement.add(cpu_ms=_each_ms(cpu_s(contender.pid) - before_s, through))
    for percent in (50, 99):
        first = percentile(through.first_ms, percent)
        added = first - percentile(straight.first_ms, percent)
        measurement.add(**{f"first_p{percent}": first, f"added_p{percent}": added})
    await _saturate(contender, measurement)
    measurement.add(memory=memory_mb(contender.pid))


async def _saturate(contender: Contender, measurement: Measurements) -> None:
    # Warm up first: admission learns how much the pool can take, and sheds until it knows.
    before, measured_s = contender.at_once_s
    await at_once(contender.way, seconds=before)
    before_s = cpu_s(contender.pid)
    tally = await at_once(contender.way, seconds=measured_s)
    measurement.count(tally)
    # Responses after the window cost CPU too.
    measurement.add(
        max_cpu_ms=1000 * (cpu_s(contender.pid) - before_s) / max(len(tally.first_ms), 1)
    )
    measurement.add(max=tally.num_whole / tally.took_s)


def _each_ms(spent_s: float, tally: Tally) -> float:
    return 1000 * spent_s / max(tally.num_whole, 1)


def _tell(contender: Contender, measurement: Measurements, report: Report) -> None:
    name = contender.name
    about = {
        "rate": contender.rate,
        "num": measurement.num,
        "num_withheld": measurement.num_withheld,
    }
    # The engine writes the same text in any file. Withholding it where it is not valid Python is
    # correct.
    num_failed = measurement.failures.total() - measurement.failures[FinishReason.FILTERED]
    if name in _TARGETS:
        report.judged(
            f"{name}.failed",
            num_failed,
            "streams",
            passed=not num_failed,
            target="none",
            endings=measurement.failures,
        )
    else:
        report.figure(f"{name}.failed", num_failed, "streams", endings=measurement.failures)
    for figure, values in measurement.values.items():
        fields = about | {"windows": windows(values)}
        maximum = _TARGETS.get(name, {}).get(figure)
        if maximum is None:
            report.figure(f"{name}.{figure}", median(values), _UNITS[figure], **fields)
        else:
            report.target(
                f"{name}.{figure}", median(values), _UNITS[figure], at_most=maximum, **fields
            )


def _tell_ratios(measurements: dict[str, Measurements], report: Report) -> None:
    for rival, minimum in ((LITELLM.name, MIN_TIMES_LITELLM), (VLLM_ROUTER.name, None)):
        if rival not in measurements:
            continue
        for name in ("websocket", "http"):
            pairs = zip(
                measurements[name].values["max"], measurements[rival].values["max"], strict=True
            )
            ratios = [our_rate / their_rate for our_rate, their_rate in pairs]
            value, fields = median(ratios), {"windows": windows(ratios)}
            if minimum is None:
                report.figure(f"{name}.times_{rival}", value, "ratio", **fields)
            else:
                passed, target = value >= minimum, f"at least {minimum:g}"
                report.judged(
                    f"{name}.times_{rival}", value, "ratio", passed=passed, target=target, **fields
                )


def _tell_multiples(
    measurements: dict[str, Measurements], router: Measurements, report: Report
) -> None:
    """Report multiples of what the router adds at _RATE and costs at full load.

    No file is cold to the router.
    """
    for name, targets in _TARGETS.items():
        for figure, published_value in _ROUTER_THERE.items():
            of_router = median(router.values[figure])
            if figure not in targets or of_router <= 0:  # it added nothing measurable
                continue
            our_median = median(measurements[name].values[figure])
            report.target(
                f"{name}.{figure}_to_{VLLM_ROUTER.name}",
                our_median / of_router,
                "ratio",
                at_most=rounded(targets[figure] / published_value),
                ours=rounded(our_median),
                router=rounded(of_router),
            )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
