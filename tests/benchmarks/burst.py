"""A burst of three times what two real replicas can serve, for a minute: what is let in keeps its
target, the rest is shed at once, and after it all is served again.

The capacity is measured first, by editors that ask again as soon as they are answered. Then the
first token at 60% of it; the target is half as much again, and what the gateway is told is 80% of
the target, as with the defaults. Engines stay off the gateway's core; the demonstration model.

    python -m tests.benchmarks.burst [--seconds 60]
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from caret.embedded.mark import environment_with
from caret.embedded.pools import ReplicaEntry
from caret.embedded.valkey import EmbeddedValkey
from tests.benchmarks.figures import Report, percentile, rounded, say, spread
from tests.benchmarks.installation import (
    SLUGS,
    Home,
    free_port,
    gateway_part,
    own_home,
    publish_tenant,
    started,
)
from tests.benchmarks.programs import divided_cores, pinned_to
from tests.benchmarks.replicas import own_replicas
from tests.benchmarks.watched_lines import Editors, Seen

MAX_SHED_MS: Final = 5.0
MAX_RECOVERY_S: Final = 5.0
_BURST: Final = 3.0  # of the capacity
_CALM: Final = 0.6
_TARGET: Final = 1.5  # of the first token's p99 in calm
_THRESHOLD: Final = 0.8  # of the target, at which the gateway sheds
_NUM_EDITORS: Final = 100
_MANY: Final = 16  # at once: more than two replicas need to be busy
_MEASURED_S: Final = 15.0
_CALM_S: Final = 15.0
_MAX_SHED_IN_CALM: Final = 0.02
_MODES: Final = ("INLINE", "FIM", "BLOCK", "CHAT")


@dataclass(frozen=True, slots=True)
class Site:
    """Two replicas and a Redis; gateways come and go."""

    home: Home
    replicas: list[ReplicaEntry]
    keys: list[str]

    @contextmanager
    def gateway(self, threshold_ms: float | None) -> Iterator[str]:
        """None: it sheds nothing. Its address."""
        port = free_port()
        home = self.home
        if threshold_ms is not None:
            thresholds = {f"CARET_SHED_{mode}_MS": str(round(threshold_ms)) for mode in _MODES}
            home = Home(home.paths, home.environment | thresholds, home.mark)
        part = gateway_part(home, port=port, replicas=self.replicas)
        with started(part):
            yield f"http://127.0.0.1:{port}"


@contextmanager
def _site() -> Iterator[Site]:
    ours, others = divided_cores()
    with ExitStack() as stack:
        with pinned_to(others):
            replicas = stack.enter_context(own_replicas(2))
        stack.enter_context(pinned_to(ours))
        home = stack.enter_context(own_home())
        stack.enter_context(EmbeddedValkey(home.paths, mark=environment_with(home.mark)))
        keys = [publish_tenant(home.paths, slug) for slug in SLUGS]
        yield Site(home, [replica.entry for replica in replicas], keys)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the burst")
    options = parser.parse_args(arguments)
    report = Report("burst")
    with _site() as site:
        with site.gateway(None) as url:
            capacity, calm_p99_ms = asyncio.run(_measure(Editors(url, site.keys, _NUM_EDITORS)))
        target_ms = _TARGET * calm_p99_ms
        report.figure("capacity", capacity, "requests/s")
        report.figure("calm.first_token_p99", calm_p99_ms, "ms", load=_CALM)
        report.figure("target", target_ms, "ms", threshold_ms=rounded(_THRESHOLD * target_ms))
        with site.gateway(_THRESHOLD * target_ms) as url:
            phases = asyncio.run(
                _burst(Editors(url, site.keys, _NUM_EDITORS), capacity, options.seconds)
            )
    _tell(report, phases, target_ms=target_ms, capacity=capacity)
    return report.exit_status


async def _measure(editors: Editors) -> tuple[float, float]:
    """Requests a second at most, and the first token's p99 in ms at 60% of it."""
    await editors.open()
    say("every file once")
    await editors.each_once(at_a_time=2)
    say("the capacity")
    await editors.at_once(_MANY, seconds=_MEASURED_S / 3)
    seen = await editors.at_once(_MANY, seconds=_MEASURED_S)
    capacity = len(seen) / _MEASURED_S
    say(f"{capacity:.1f} requests/s; calm")
    calm = await editors.at_rate(_CALM * capacity, seconds=_CALM_S)
    editors.close()
    return capacity, percentile(_first_ms(calm), 99)


@dataclass(frozen=True, slots=True)
class Phases:
    before: list[Seen]
    burst: list[Seen]
    after: list[Seen]
    burst_ended_s: float
    burst_s: float
    num_withheld: int


async def _burst(editors: Editors, capacity: float, seconds: float) -> Phases:
    await editors.open()
    before = await editors.at_rate(_CALM * capacity, seconds=_CALM_S)
    say("the burst")
    burst = await editors.at_rate(_BURST * capacity, seconds=seconds)
    burst_ended_s = max(seen.asked_s for seen in burst)
    num_withheld = editors.num_withheld
    say("calm again")
    after = await editors.at_rate(_CALM * capacity, seconds=_CALM_S)
    editors.close()
    return Phases(before, burst, after, burst_ended_s, seconds, num_withheld)


def _tell(report: Report, phases: Phases, *, target_ms: float, capacity: float) -> None:
    first_ms, shed = _first_ms(phases.burst), [seen for seen in phases.burst if seen.is_shed]
    report.target(
        "burst.first_token_p99",
        percentile(first_ms, 99),
        "ms",
        at_most=target_ms,
        **spread(first_ms),
    )
    gateway_ms = [s.gateway_total_ms for s in shed if s.gateway_total_ms is not None]
    report.target(
        "burst.shed_p99",
        percentile(gateway_ms, 99),
        "ms",
        at_most=MAX_SHED_MS,
        **spread(gateway_ms),
    )
    client_ms = [seen.end_ms for seen in shed]
    report.figure("burst.shed_p99_at_client", percentile(client_ms, 99), "ms", **spread(client_ms))
    report.figure("burst.shed_share", len(shed) / len(phases.burst), "ratio")
    report.figure("burst.offered", len(phases.burst) / phases.burst_s / capacity, "capacities")
    report.figure("burst.served", len(first_ms) / phases.burst_s / capacity, "capacities")
    report.figure("burst.withheld", phases.num_withheld, "requests")
    finishes = Counter(seen.finish for seen in phases.burst)
    report.judged(
        "burst.errors", finishes["error"], "requests", passed=not finishes["error"], target="0"
    )
    report.figure("before.shed_share", _shed_share(phases.before), "ratio")
    report.target(
        "recovery", _recovery_s(phases), "s", at_most=MAX_RECOVERY_S, shed_share=_MAX_SHED_IN_CALM
    )
    settled = [s for s in phases.after if s.asked_s > phases.burst_ended_s + MAX_RECOVERY_S]
    settled_ms = _first_ms(settled)
    report.target("after.first_token_p99", percentile(settled_ms, 99), "ms", at_most=target_ms)


def _recovery_s(phases: Phases) -> float:
    """From the burst's end until no more than 2% of what follows is shed."""
    after = sorted(phases.after, key=lambda seen: seen.asked_s)
    for place, seen in enumerate(after):
        if not seen.is_shed and _shed_share(after[place:]) <= _MAX_SHED_IN_CALM:
            return max(0.0, seen.asked_s - phases.burst_ended_s)
    return _CALM_S


def _first_ms(seen: Sequence[Seen]) -> list[float]:
    """Of what was let in."""
    return [each.edge_ms for each in seen if not each.is_shed and each.edge_ms is not None]


def _shed_share(seen: Sequence[Seen]) -> float:
    return sum(each.is_shed for each in seen) / max(1, len(seen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
