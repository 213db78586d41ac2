"""Several gateways in front of several engines on the same cores, and the CPU time of each."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from tests.benchmarks.installation import Home
from tests.benchmarks.load import ConnectionGroup
from tests.benchmarks.loaded_gateway import gateway_program, new_company, redis_of
from tests.benchmarks.processes import Cores, cpu_s, num_preempted, running
from tests.benchmarks.replicas import own_replicas
from tests.benchmarks.results import say
from tests.benchmarks.synthetic_engine import synthetic_engine_process
from tests.benchmarks.workload import Developers, websocket_group


@dataclass(frozen=True, slots=True)
class EngineKind:
    """A kind of engines, and how they are measured."""

    name: str
    # Starts this many engines, and yields the URL and the process ID of each.
    start: Callable[[Home, int], AbstractContextManager[list[tuple[str, int]]]]
    seconds: float  # of each measurement
    warm_up_s: float = 1.0
    num_connections: int = 32  # to each gateway, from as many editors


@dataclass(frozen=True, slots=True)
class Fleet:
    gateways: Sequence[tuple[str, int]]  # URL and process ID
    engines: Sequence[int]  # process IDs
    engine_kind: str
    keys: Sequence[str]
    groups: Sequence[ConnectionGroup]  # one for each gateway

    @property
    def label(self) -> str:
        return f"{len(self.gateways)} gateways, {len(self.engines)} {self.engine_kind} engines"


@dataclass(frozen=True, slots=True)
class CpuSeconds:
    """CPU seconds, and how often the system preempted each gateway."""

    gateways: tuple[float, ...]
    engines: tuple[float, ...]
    harness: float  # of this process, which contains the clients
    preempted: tuple[int, ...]  # by gateway, not in seconds

    @classmethod
    def measure(cls, fleet: Fleet) -> "CpuSeconds":
        processes = [pid for _, pid in fleet.gateways]
        return cls(
            tuple(map(cpu_s, processes)),
            tuple(map(cpu_s, fleet.engines)),
            time.process_time(),
            tuple(map(num_preempted, processes)),
        )

    def since(self, before: "CpuSeconds") -> "CpuSeconds":
        """Return the differences to an earlier measurement."""

        def subtract(now: Sequence[float], before: Sequence[float]) -> tuple[float, ...]:
            return tuple(round(a - b, 2) for a, b in zip(now, before, strict=True))

        return CpuSeconds(
            subtract(self.gateways, before.gateways),
            subtract(self.engines, before.engines),
            round(self.harness - before.harness, 2),
            tuple(a - b for a, b in zip(self.preempted, before.preempted, strict=True)),
        )


@contextmanager
def _start_synthetic_engines(home: Home, count: int) -> Iterator[list[tuple[str, int]]]:
    """Start synthetic engines and yield the URL and the process ID of each."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(synthetic_engine_process(home, cores=all_cores(), number=number))
            for number in range(count)
        ]


@contextmanager
def _start_real_engines(_home: Home, count: int) -> Iterator[list[tuple[str, int]]]:
    """Start engines of the demonstration model, each with its own home.

    Yield the URL and the process ID of each.
    """
    with own_replicas(count) as replicas:
        yield [(replica.url, replica.service.child.pid) for replica in replicas]


def synthetic_engines(seconds: float) -> EngineKind:
    return EngineKind("synthetic", _start_synthetic_engines, seconds)


def real_engines(seconds: float) -> EngineKind:
    # The first prompt of a file takes such an engine a third of a second, and there are two cores.
    # So only four editors send requests, and the warm-up is long enough for their first prompts.
    return EngineKind("real", _start_real_engines, seconds, warm_up_s=10.0, num_connections=4)


def all_cores() -> Cores:
    return frozenset(os.sched_getaffinity(0))


@contextmanager
def fleet_of(
    home: Home, num_gateways: int, num_engines: int, *, kind: EngineKind
) -> Iterator[Fleet]:
    """Start engines of this kind, Redis and the gateways.

    Raises ServiceFailed if one of them does not start.
    """
    cores = all_cores()
    with ExitStack() as stack:
        engines = stack.enter_context(kind.start(home, num_engines))
        company = new_company(home, num_developers=kind.num_connections * num_gateways)
        stack.enter_context(redis_of(home, company, cores=cores))
        gateways = []
        for number in range(num_gateways):
            program, url = gateway_program(
                home, [engine for engine, _ in engines], name=f"gateway-{number}"
            )
            gateways.append((url, stack.enter_context(running(home, program, cores=cores))))
        groups = [
            websocket_group(url, keys, Developers(kind.num_connections))
            for (url, _), keys in zip(
                gateways, _split_keys(company.keys, kind.num_connections), strict=True
            )
        ]
        fleet = Fleet(gateways, [pid for _, pid in engines], kind.name, company.keys, groups)
        say(fleet.label)
        yield fleet


def _split_keys(keys: Sequence[str], size: int) -> list[Sequence[str]]:
    return [keys[n : n + size] for n in range(0, len(keys), size)]
