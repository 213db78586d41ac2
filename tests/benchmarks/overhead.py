"""The overhead of gateways in front of an engine that answers at once: Caret's gateway, LiteLLM's
proxy and vLLM's router.

Each gateway runs alone on one core. The engine, Redis and this harness have the other cores.

Caret's gateway runs its full pipeline: authentication, limits, assembly of a 2,000-token prompt,
filter and record. Each request differs from the previous one by one typed character. `cold`
requests are for a file that the gateway has never seen. The competitors get a text of as many
tokens and forward it. Each contender is measured at a fixed request rate and at full load. At the
fixed rate, direct requests to the engine are mixed in at random; "added" is the difference of two
quantiles, through the gateway and direct, of the same window. The contenders take turns in each
round; results are medians over the rounds.

The target for CPU time per request applies to full load, because it was set there: the router's
0.24 ms correspond to the 4,154 streams/s of its one core. CPU time per request at the fixed rate is
reported too. There, the same work costs more on every gateway. `machine.bursts` shows by how much:
it is the CPU time of fixed work at 200/s on the gateway's core, divided by its CPU time without
pauses.

The targets were set on one machine, and depend on it as much as on the gateway. So if vLLM's router
was measured, the results are also reported as multiples of the router's results, from the same run
and on the same cores. The targets of these multiples come from the router's results on the first
machine. The speed of the machine does not affect a multiple, only the difference between the
gateways does. A result must meet both targets: if it misses the one in milliseconds, a good
multiple does not help.

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
from tests.benchmarks.competitors import (
    LITELLM,
    VLLM_ROUTER,
    Competitor,
    NotMeasured,
    running_competitor,
)
from tests.benchmarks.cpu_wakeup import report_bursts
from tests.benchmarks.installation import Home, create_home
from tests.benchmarks.load import ConnectionGroup, Tally, send_at_full_load, send_at_rate
from tests.benchmarks.loaded_gateway import Gateway, loaded_gateway, new_company
from tests.benchmarks.processes import Cores, cpu_s, memory_mb, pinned_to, split_cores
from tests.benchmarks.results import Report, machine, median, percentile, rounded, say, windows
from tests.benchmarks.synthetic_engine import synthetic_engine
from tests.benchmarks.workload import (
    Developers,
    NewFiles,
    competitor_group,
    engine_group,
    http_group,
    websocket_group,
)

MAX_ADDED_P50_MS: Final = 1.5
MAX_ADDED_P99_MS: Final = 5.0
MAX_CPU_MS: Final = 1.6
MAX_COLD_CPU_MS: Final = 4.0
MIN_TIMES_LITELLM: Final = 15.0
NUM_CONNECTIONS: Final = 64
# A response takes 17 ms: with fewer connections, the connections would limit the throughput.
_NUM_DIRECT_CONNECTIONS: Final = 256
_RATE: Final = 200.0
_DIRECT_RATE: Final = 50.0  # of the direct requests that are mixed in
_LITELLM_RATE: Final = 8.0  # LiteLLM cannot sustain much more
_COLD_RATE: Final = 40.0
_AT_RATE_S: Final = 6.0
_FULL_LOAD_S: Final = 4.0
_LITELLM_FULL_LOAD_S: Final = 12.0  # the first of 64 concurrent requests already waits for seconds
_WARM_UP_S: Final = 1.5
# The length of a window of `cold`, and of its warm-up. For longer ones, there are not enough new
# files.
_COLD_FULL_LOAD_S: Final = 1.5
_MAX_COLD_RATE: Final = 700.0  # at full load


_UNITS: Final = {
    **dict.fromkeys(("first_p50", "first_p99", "added_p50", "added_p99"), "ms"),
    **dict.fromkeys(("cpu_ms", "max_cpu_ms"), "ms a request"),
    "max": "streams/s a core",  # at full load, as `max_cpu_ms`
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
# The results of vLLM's router on the machine on which the targets were set.
_ROUTER_ON_FIRST_MACHINE: Final = {"added_p50": 0.23, "added_p99": 0.37, "max_cpu_ms": 0.24}


@dataclass(frozen=True, slots=True)
class Contender:
    """Connections through a gateway, and that gateway's process."""

    name: str
    group: ConnectionGroup
    pid: int
    rate: float = _RATE
    # Seconds of full load: the warm-up, and the measured time.
    full_load_s: tuple[float, float] = (_WARM_UP_S, _FULL_LOAD_S)


@dataclass(slots=True)
class Measurements:
    """The results of one contender, with a value for each window."""

    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    num: int = 0  # complete responses
    failures: Counter[str] = field(default_factory=Counter)
    num_withheld: int = 0  # requests not sent, because no connection was free

    def add(self, **values: float) -> None:
        for name, value in values.items():
            self.values[name].append(value)

    def count(self, tally: Tally) -> None:
        self.num += tally.num_complete
        self.failures += tally.failures
        self.num_withheld += tally.num_withheld


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], help="litellm, vllm-router")
    options = parser.parse_args(arguments)
    report = Report("overhead")
    gc.disable()  # of this harness: its pauses would count as the gateways'
    machine()  # is cached: counts the cores before this process is pinned to some of them
    our_cores, other_cores = split_cores()
    report_bursts(report, cores=our_cores)
    with create_home() as home, pinned_to(other_cores):
        uvloop.run(_compare(home, (our_cores, other_cores), options, report))
    return report.exit_status


async def _compare(
    home: Home, cores: tuple[Cores, Cores], options: argparse.Namespace, report: Report
) -> None:
    company = new_company(home, num_developers=NUM_CONNECTIONS)
    with ExitStack() as stack:
        engine_url = stack.enter_context(synthetic_engine(home, cores=cores[1]))
        gateway = stack.enter_context(
            loaded_gateway(home, engine_url=engine_url, company=company, cores=cores)
        )
        direct = _close_with(
            stack, engine_group(engine_url, num_connections=_NUM_DIRECT_CONNECTIONS)
        )
        contenders = _caret_contenders(stack, gateway, company.keys, num_rounds=options.rounds)
        for competitor in (VLLM_ROUTER, LITELLM):
            if competitor.name not in options.without:
                contenders += _start_competitor(
                    stack, (competitor, home, engine_url, cores[0]), report
                )
        measurements = {contender.name: Measurements() for contender in contenders}
        await _report_ceiling(direct, report)
        for number in range(options.rounds):
            for contender in contenders:
                say(f"round {number + 1} of {options.rounds}: {contender.name}")
                await _run_round(contender, direct, measurements[contender.name])
        for contender in contenders:
            _report_results(contender, measurements[contender.name], report)
        _report_ratios(measurements, report)
        if VLLM_ROUTER.name in measurements:
            _report_multiples(measurements, measurements[VLLM_ROUTER.name], report)


def _close_with(stack: ExitStack, group: ConnectionGroup) -> ConnectionGroup:
    stack.callback(group.close)
    return group


def _caret_contenders(
    stack: ExitStack, gateway: Gateway, keys: Sequence[str], *, num_rounds: int
) -> list[Contender]:
    url, pid = gateway.url, gateway.pid
    developers = Developers(NUM_CONNECTIONS)
    # In each round, `cold` is measured at its rate, and then at full load: warm-up and window.
    num_new = _COLD_RATE * (_WARM_UP_S + _AT_RATE_S) + _MAX_COLD_RATE * 2 * _COLD_FULL_LOAD_S
    new_files = NewFiles(int(num_rounds * num_new))
    websocket = _close_with(stack, websocket_group(url, keys, developers))
    http = _close_with(stack, http_group(url, keys, developers))
    cold = _close_with(stack, websocket_group(url, keys, new_files))
    return [
        Contender("websocket", websocket, pid),
        Contender("http", http, pid),
        Contender(
            "cold", cold, pid, rate=_COLD_RATE, full_load_s=(_COLD_FULL_LOAD_S, _COLD_FULL_LOAD_S)
        ),
    ]


def _start_competitor(
    stack: ExitStack, competitor_setup: tuple[Competitor, Home, str, Cores], report: Report
) -> list[Contender]:
    """Start the competitor, and return it as a contender; [] if it cannot be measured.

    `competitor_setup` contains the competitor, its home, the engine's URL and its cores.
    """
    competitor, home, engine_url, cores = competitor_setup
    try:
        context = running_competitor(competitor, home, engine_url=engine_url, cores=cores)
        server = stack.enter_context(context)
    except NotMeasured as reason:
        report.figure(f"{competitor.name}.measured", 0, "bool", reason=str(reason))
        return []
    report.figure(f"{competitor.name}.measured", 1, "bool", version=server.version)
    group = _close_with(stack, competitor_group(server.url, num_connections=NUM_CONNECTIONS))
    if competitor is LITELLM:
        full_load_s = (_WARM_UP_S, _LITELLM_FULL_LOAD_S)
        return [
            Contender(
                competitor.name, group, server.pid, rate=_LITELLM_RATE, full_load_s=full_load_s
            )
        ]
    return [Contender(competitor.name, group, server.pid)]


async def _report_ceiling(direct: ConnectionGroup, report: Report) -> None:
    """Report how much the engine and this harness sustain without a gateway."""
    await direct.open()
    await send_at_full_load(direct, seconds=_WARM_UP_S)
    tally = await send_at_full_load(direct, seconds=_FULL_LOAD_S)
    report.figure("direct.max", tally.num_complete / tally.took_s, "streams/s")


async def _run_round(
    contender: Contender, direct: ConnectionGroup, measurement: Measurements
) -> None:
    await asyncio.gather(contender.group.open(), direct.open())
    await send_at_rate([(contender.group, contender.rate)], seconds=_WARM_UP_S)
    before_s = cpu_s(contender.pid)
    through_gateway, direct_tally = await send_at_rate(
        [(contender.group, contender.rate), (direct, _DIRECT_RATE)], seconds=_AT_RATE_S
    )
    measurement.count(through_gateway)
    if not (through_gateway.first_ms and direct_tally.first_ms):
        raise SystemExit(f"{contender.name} returned no response: {dict(measurement.failures)}")
    measurement.add(cpu_ms=_ms_per_request(cpu_s(contender.pid) - before_s, through_gateway))
    for percent in (50, 99):
        first = percentile(through_gateway.first_ms, percent)
        added = first - percentile(direct_tally.first_ms, percent)
        measurement.add(**{f"first_p{percent}": first, f"added_p{percent}": added})
    await _saturate(contender, measurement)
    measurement.add(memory=memory_mb(contender.pid))


async def _saturate(contender: Contender, measurement: Measurements) -> None:
    # Admission sheds requests until it has learned the capacity of the pool, so warm up first.
    warm_up_s, measured_s = contender.full_load_s
    await send_at_full_load(contender.group, seconds=warm_up_s)
    before_s = cpu_s(contender.pid)
    tally = await send_at_full_load(contender.group, seconds=measured_s)
    measurement.count(tally)
    # Divide by all complete responses, because those after the window cost CPU time, too.
    measurement.add(
        max_cpu_ms=1000 * (cpu_s(contender.pid) - before_s) / max(len(tally.first_ms), 1)
    )
    measurement.add(max=tally.num_complete / tally.took_s)


def _ms_per_request(spent_s: float, tally: Tally) -> float:
    return 1000 * spent_s / max(tally.num_complete, 1)


def _report_results(contender: Contender, measurement: Measurements, report: Report) -> None:
    name = contender.name
    about = {
        "rate": contender.rate,
        "num": measurement.num,
        "num_withheld": measurement.num_withheld,
    }
    # The engine writes the same text in any file. Where it is not valid Python, the gateway's
    # filter withholds it, which is correct and no failure.
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


def _report_ratios(measurements: dict[str, Measurements], report: Report) -> None:
    """Report our throughput at full load as a multiple of each competitor's."""
    for competitor, minimum in ((LITELLM.name, MIN_TIMES_LITELLM), (VLLM_ROUTER.name, None)):
        if competitor not in measurements:
            continue
        for name in ("websocket", "http"):
            pairs = zip(
                measurements[name].values["max"],
                measurements[competitor].values["max"],
                strict=True,
            )
            ratios = [our_rate / their_rate for our_rate, their_rate in pairs]
            value, fields = median(ratios), {"windows": windows(ratios)}
            if minimum is None:
                report.figure(f"{name}.times_{competitor}", value, "ratio", **fields)
            else:
                passed, target = value >= minimum, f"at least {minimum:g}"
                report.judged(
                    f"{name}.times_{competitor}",
                    value,
                    "ratio",
                    passed=passed,
                    target=target,
                    **fields,
                )


def _report_multiples(
    measurements: dict[str, Measurements], router: Measurements, report: Report
) -> None:
    """Report results as multiples of the router's: added time at _RATE, CPU time at full load.

    The router treats all files alike, so `cold` results are compared with its only results.
    """
    for name, targets in _TARGETS.items():
        for figure, first_machine_value in _ROUTER_ON_FIRST_MACHINE.items():
            router_median = median(router.values[figure])
            if figure not in targets or router_median <= 0:  # the router added no measurable time
                continue
            our_median = median(measurements[name].values[figure])
            report.target(
                f"{name}.{figure}_to_{VLLM_ROUTER.name}",
                our_median / router_median,
                "ratio",
                at_most=rounded(targets[figure] / first_machine_value),
                ours=rounded(our_median),
                router=rounded(router_median),
            )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
