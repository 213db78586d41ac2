"""The resources of processes, and the requests and connections that gateways have leaked.

Resources are memory (with that of child processes), file descriptors, sockets and threads.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.request import ProxyHandler, build_opener

from tests.benchmarks.processes import own_memory_mb
from tests.chaos.environment import METRICS_PORT, World

_direct: Final = build_opener(ProxyHandler({}))  # ignores proxies of the environment
_GAUGES: Final = ("caret_completions_in_flight", "caret_connected_clients")


@dataclass(frozen=True, slots=True)
class ProcessResources:
    memory_mb: float  # of the process and its children, without shared memory
    descriptors: int
    sockets: int
    threads: int


def resources_of(pid: int) -> ProcessResources | None:
    """Return the resources of the process, or None if it has ended."""
    try:
        links = _descriptor_links(pid)
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
        sockets = sum(link.startswith("socket:") for link in links)
        return ProcessResources(round(own_memory_mb(pid), 2), len(links), sockets, threads)
    # RuntimeError: the process or a child is a zombie, which has no memory.
    except (FileNotFoundError, RuntimeError):
        return None


def resources_by_process(world: World) -> dict[tuple[str, int], ProcessResources]:
    """Return the resources by service and process ID: a restarted process is another process."""
    measured = {
        (service, placed_part.pid): resources_of(placed_part.pid)
        for service, placed_part in world.parts.items()
    }
    return {process: resources for process, resources in measured.items() if resources is not None}


def resource_growth(
    before: Mapping[tuple[str, int], ProcessResources],
    after: Mapping[tuple[str, int], ProcessResources],
) -> dict[str, dict[str, float]]:
    """Return the growth of processes that still run, by service, without unchanged values."""
    growth_by_service = {}
    for process in before.keys() & after.keys():
        old, new = asdict(before[process]), asdict(after[process])
        growth = {name: round(new[name] - old[name], 1) for name in old if new[name] != old[name]}
        if growth:
            service, _pid = process
            growth_by_service[service] = growth
    return dict(sorted(growth_by_service.items()))


def leaked_requests_and_connections(world: World) -> dict[str, float]:
    """Return completions in flight and connections, by gateway and gauge, without zeros.

    Call this after the clients have stopped: everything that is left then is a leak.
    """
    leaks = {}
    for gateway in ("gateway-1", "gateway-2"):
        host = world.hosts[gateway]
        with host.entered(), _direct.open(f"http://{host.address}:{METRICS_PORT}/metrics") as page:
            for line in page.read().decode().splitlines():
                name, _, value = line.partition(" ")
                if name in _GAUGES and float(value):
                    leaks[f"{gateway} {name}"] = float(value)
    return leaks


def _descriptor_links(pid: int) -> list[str]:
    """Return what each file descriptor of the process refers to, such as "socket:[1234]"."""
    links = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it has just been closed
            links.append(str(path.readlink()))
    return links
