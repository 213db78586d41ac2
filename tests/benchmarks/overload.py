"""Overload: a minute of three times the load that two real replicas can serve.

Admitted requests must keep their target, the rest must be shed at once, and after the burst all
requests must be served again.

The capacity is measured first, with editors that send the next request after each response. The
number of editors grows until the throughput no longer grows. Then the first-token time is measured
at 60% of the capacity, until the gateway receives the engine's first token. (Clients see text later
if the filter holds text back, even without load; `first_text` reports this.) The target of the
overload is one and a half times the p99 of that first-token time. The gateway sheds at 80% of the
target, as with the default settings. The engines serve the demonstration model, on other cores than
the gateway's.

    python -m tests.benchmarks.overload [--seconds 60] [--calm-seconds 20] [--step-seconds 10]

To check only that the benchmark runs: `--seconds 5 --calm-seconds 6 --step-seconds 2`. The results
are then meaningless.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Final

from caret.local.databases.valkey import EmbeddedValkey
from caret.local.engines.pools_file import ReplicaEntry
from caret.local.processes.process_tag import tag_environment
from tests.benchmarks.installation import (
    SLUGS,
    Home,
    build_gateway_service,
    create_home,
    publish_tenant,
    started,
)
from tests.benchmarks.processes import Neighbours, pinned_to, split_cores
from tests.benchmarks.replicas import own_replicas
from tests.benchmarks.results import Report, machine, percentile, rounded, say, spread
from tests.benchmarks.traced_connections import Editors, Observation
from tests.stack.ports import free_port

MAX_SHED_MS: Final = 5.0
MAX_RECOVERY_S: Final = 5.0
_BURST_LOAD: Final = 3.0  # multiple of the capacity
_CALM_LOAD: Final = 0.6  # multiple of the capacity
_TARGET_FACTOR: Final = 1.5  # multiple of the first token's p99 at _CALM_LOAD
_SHED_SHARE: Final = 0.8  # share of the target at which the gateway sheds
_NUM_EDITORS: Final = 100
_FIRST_CONCURRENCY: Final = 8  # requests at once in the first step; each step doubles them
_MIN_GAIN: Final = 1.05  # a smaller increase of throughput is no gain
_WARM_UP: Final = 0.3  # share of a step's time in which no responses are counted
_MAX_SHED_IN_CALM: Final = 0.02
_MODES: Final = ("INLINE", "FIM", "BLOCK", "CHAT")


@dataclass(frozen=True, slots=True)
class Site:
    """Two replicas and a Redis, for which gateways are started and stopped."""

    home: Home
    replicas: list[ReplicaEntry]
    keys: list[str]

    @contextmanager
    def gateway(self, threshold_ms: float | None) -> Iterator[str]:
        """Run a gateway and yield its URL. It sheds nothing if `threshold_ms` is None."""
        port = free_port()
        home = self.home
        if threshold_ms is not None:
            thresholds = {
                f"CARET_FIRST_TOKEN_TARGET_{mode}_MS": str(round(threshold_ms)) for mode in _MODES
            }
            home = replace(home, environment=home.environment | thresholds)
        with started(build_gateway_service(home, port=port, replicas=self.replicas)):
            yield f"http://127.0.0.1:{port}"


@contextmanager
def _site() -> Iterator[Site]:
    our_cores, other_cores = split_cores()
    with ExitStack() as stack:
        with pinned_to(other_cores):
            replicas = stack.enter_context(own_replicas(2))
        stack.enter_context(pinned_to(our_cores))
        home = stack.enter_context(create_home())
        stack.enter_context(EmbeddedValkey(home.paths, tag_environment=tag_environment(home.tag)))
        keys = [publish_tenant(home.paths, slug) for slug in SLUGS]
        yield Site(home, [replica.entry for replica in replicas], keys)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="duration of the burst")
    parser.add_argument(
        "--calm-seconds",
        type=float,
        default=20.0,
        help="duration of the calm before and after the burst",
    )
    parser.add_argument(
        "--step-seconds",
        type=float,
        default=10.0,
        help="duration of each step that measures the capacity",
    )
    options = parser.parse_args(arguments)
    report = Report("burst")
    machine()  # is cached: counts the cores before this process is pinned to some of them
    with _site() as site:
        # The same editors in all measurements: each continues where it stopped, so that no request
        # repeats one that the engine has cached.
        editors = Editors(site.keys, _NUM_EDITORS)
        with site.gateway(None) as url:
            neighbours = Neighbours()
            editors.url = url
            capacity, calm_p99_ms = asyncio.run(_measure(editors, options, report))
            neighbours.report(report, "capacity.neighbours")
        target_ms = _TARGET_FACTOR * calm_p99_ms
        report.figure("target", target_ms, "ms", threshold_ms=rounded(_SHED_SHARE * target_ms))
        with site.gateway(_SHED_SHARE * target_ms) as url:
            neighbours = Neighbours()
            editors.url = url
            phases = asyncio.run(_burst(editors, capacity, options))
            neighbours.report(report, "burst.neighbours")
    _report_results(report, phases, target_ms=target_ms, capacity=capacity)
    return report.exit_status


async def _measure(
    editors: Editors, options: argparse.Namespace, report: Report
) -> tuple[float, float]:
    """Return the capacity in requests per second, and the first token's p99 in ms at 60% of it."""
    await editors.open()
    say("requesting every file once")
    await editors.request_each_file_once(at_a_time=2)
    capacity = await _measure_capacity(editors, options.step_seconds, report)
    say(f"{capacity:.1f} requests/s; calm")
    # Twice as long as the calm beside the burst, because the target depends on this p99.
    calm = await editors.send_at_rate(_CALM_LOAD * capacity, seconds=2 * options.calm_seconds)
    editors.close()
    first_ms = _first_ms(calm)
    report.figure("calm.first_token_p99", percentile(first_ms, 99), "ms", **spread(first_ms))
    return capacity, percentile(first_ms, 99)


async def _measure_capacity(editors: Editors, seconds: float, report: Report) -> float:
    """Return the completions per second at which more concurrent requests bring no gain."""
    best, count = 0.0, _FIRST_CONCURRENCY
    while count < editors.num:
        rate = await _measure_rate(editors, count, seconds)
        report.figure(f"capacity.of_{count}_at_once", rate, "requests/s")
        if rate < _MIN_GAIN * best:
            break
        best, count = rate, 2 * count
    return max(best, rate)


async def _measure_rate(editors: Editors, count: int, seconds: float) -> float:
    """Return the completions per second with `count` requests in flight."""
    say(f"{count} at once")
    began_s = time.perf_counter()
    observations = await editors.send_concurrently(count, seconds=seconds)
    from_s, to_s = began_s + _WARM_UP * seconds, began_s + seconds
    return sum(from_s <= observation.ended_s < to_s for observation in observations) / (
        to_s - from_s
    )


@dataclass(frozen=True, slots=True)
class Phases:
    before: list[Observation]
    burst: list[Observation]
    after: list[Observation]
    burst_ended_s: float
    burst_s: float
    after_s: float  # from the end of the burst to the last request
    num_withheld: int  # requests of the burst that were not sent, because no editor was free


async def _burst(editors: Editors, capacity: float, options: argparse.Namespace) -> Phases:
    await editors.open()
    before = await editors.send_at_rate(_CALM_LOAD * capacity, seconds=options.calm_seconds)
    say("the burst")
    num_withheld_before = editors.num_withheld
    burst = await editors.send_at_rate(_BURST_LOAD * capacity, seconds=options.seconds)
    burst_ended_s = max(observation.sent_s for observation in burst)
    num_withheld = editors.num_withheld - num_withheld_before
    say("calm again")
    after = await editors.send_at_rate(_CALM_LOAD * capacity, seconds=options.calm_seconds)
    editors.close()
    after_s = max(observation.sent_s for observation in after) - burst_ended_s
    return Phases(before, burst, after, burst_ended_s, options.seconds, after_s, num_withheld)


def _report_results(report: Report, phases: Phases, *, target_ms: float, capacity: float) -> None:
    first_ms = _first_ms(phases.burst)
    shed = [observation for observation in phases.burst if observation.is_shed]
    _report_p99(report, "burst.first_token_p99", first_ms, at_most=target_ms)
    gateway_ms = [
        observation.gateway_total_ms
        for observation in shed
        if observation.gateway_total_ms is not None
    ]
    _report_p99(report, "burst.shed_p99", gateway_ms, at_most=MAX_SHED_MS)
    for name, times in (
        ("burst.shed_p99_at_client", [observation.end_ms for observation in shed]),
        ("burst.first_text_p99", [s.first_ms for s in phases.burst if s.first_ms is not None]),
    ):
        if times:
            report.figure(name, percentile(times, 99), "ms", **spread(times))
    report.figure("burst.shed_share", len(shed) / len(phases.burst), "ratio")
    report.figure("burst.offered", len(phases.burst) / phases.burst_s / capacity, "capacities")
    report.figure("burst.served", len(first_ms) / phases.burst_s / capacity, "capacities")
    report.figure("burst.withheld", phases.num_withheld, "requests")
    finishes = Counter(observation.finish_reason for observation in phases.burst)
    report.judged(
        "burst.errors", finishes["error"], "requests", passed=not finishes["error"], target="0"
    )
    report.figure("before.shed_share", _shed_share(phases.before), "ratio")
    report.target(
        "recovery", _recovery_s(phases), "s", at_most=MAX_RECOVERY_S, shed_share=_MAX_SHED_IN_CALM
    )
    settled = [s for s in phases.after if s.sent_s > phases.burst_ended_s + MAX_RECOVERY_S]
    _report_p99(report, "after.first_token_p99", _first_ms(settled), at_most=target_ms)


def _report_p99(report: Report, name: str, times_ms: Sequence[float], *, at_most: float) -> None:
    if times_ms:
        p99 = percentile(times_ms, 99)
        report.target(name, p99, "ms", at_most=at_most, **spread(times_ms))
    else:  # a run in which nothing was served, or nothing was shed, proves nothing
        report.judged(name, 0.0, "ms", passed=False, target=f"at most {at_most:g}", n=0)


def _recovery_s(phases: Phases) -> float:
    """Return the seconds from the burst's end until at most 2% of the later requests are shed.

    Returns the whole time if that never happens.
    """
    after = sorted(phases.after, key=lambda observation: observation.sent_s)
    for index, observation in enumerate(after):
        if not observation.is_shed and _shed_share(after[index:]) <= _MAX_SHED_IN_CALM:
            return max(0.0, observation.sent_s - phases.burst_ended_s)
    return phases.after_s


def _first_ms(observations: Sequence[Observation]) -> list[float]:
    """Return the first-token times of the admitted requests."""
    return [
        observation.gateway_first_ms
        for observation in observations
        if observation.gateway_first_ms is not None
    ]


def _shed_share(observations: Sequence[Observation]) -> float:
    return sum(observation.is_shed for observation in observations) / max(1, len(observations))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
