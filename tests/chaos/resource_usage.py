"""What processes hold: memory, file descriptors, sockets, threads; of each with its children."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.request import ProxyHandler, build_opener

from tests.benchmarks.processes import own_memory_mb
from tests.chaos.environment import METRICS_PORT, World

_direct: Final = build_opener(ProxyHandler({}))  # not by a proxy of the environment
_GAUGES: Final = ("caret_completions_in_flight", "caret_connected_clients")


@dataclass(frozen=True, slots=True)
class Held:
    memory_mb: float  # that it shares with nobody
    descriptors: int
    sockets: int
    threads: int


def held_by(pid: int) -> Held | None:
    """None: it has ended."""
    try:
        links = [str(path.readlink()) for path in _links(pid)]
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
        sockets = sum(link.startswith("socket:") for link in links)
        return Held(round(own_memory_mb(pid), 2), len(links), sockets, threads)
    except (FileNotFoundError, RuntimeError):  # also: a child of it is a zombie, without memory
        return None


def held_in(world: World) -> dict[tuple[str, int], Held]:
    """By part and process id: one that was started again is another."""
    found = {(key, placed.pid): held_by(placed.pid) for key, placed in world.parts.items()}
    return {who: held for who, held in found.items() if held is not None}


def grown(
    before: Mapping[tuple[str, int], Held], after: Mapping[tuple[str, int], Held]
) -> dict[str, dict[str, float]]:
    """By how much, of those that live on; what has not changed is left out."""
    found = {}
    for who in before.keys() & after.keys():
        old, new = asdict(before[who]), asdict(after[who])
        more = {name: round(new[name] - old[name], 1) for name in old if new[name] != old[name]}
        if more:
            found[who[0]] = more
    return dict(sorted(found.items()))


def still_held(world: World) -> dict[str, float]:
    """By gateway and gauge, once nobody asks any more: completions under way, and connections."""
    found = {}
    for key in ("gateway-1", "gateway-2"):
        host = world.hosts[key]
        with host.entered(), _direct.open(f"http://{host.address}:{METRICS_PORT}/metrics") as page:
            for line in page.read().decode().splitlines():
                name, _, value = line.partition(" ")
                if name in _GAUGES and float(value):
                    found[f"{key} {name}"] = float(value)
    return found


def _links(pid: int) -> list[Path]:
    found = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            path.readlink()
            found.append(path)
    return found
