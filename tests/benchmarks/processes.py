"""Programs that a benchmark measures: started on cores of their own, and what they cost."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from caret.local.child_process import ChildSpec, dying_with_parent
from caret.local.health_checks import answers_ok
from caret.local.paths import REPOSITORY
from caret.local.service import CommandService
from tests.benchmarks.installation import Home, started
from tests.benchmarks.results import Report, say

Cores = frozenset[int]
MAX_NEIGHBOURS: Final = 0.1  # cores, on average: what a machine does when nobody uses it
_READY_TIMEOUT_S: Final = 60.0
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


def divided_cores() -> tuple[Cores, Cores]:
    """One core for what is measured, and the others for what asks and answers.

    Raises SystemExit where there is only one.
    """
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        raise SystemExit("This needs two cores: one is for what is measured.")
    return frozenset({first}), frozenset(others)


@contextmanager
def pinned_to(cores: Cores) -> Iterator[None]:
    """What is started meanwhile stays on these cores, threads and children included."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def move_to(cores: Cores, pid: int) -> None:
    """The process, its threads and its children, from now on."""
    for each in _family(pid):
        with suppress(FileNotFoundError, ProcessLookupError):  # it or a thread of it has just ended
            for thread in Path(f"/proc/{each}/task").iterdir():
                os.sched_setaffinity(int(thread.name), cores)


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    command: Sequence[str]
    ready_url: str
    environment: dict[str, str]


@contextmanager
def running(home: Home, program: Program, *, cores: Cores) -> Iterator[int]:
    """The number of the process. Raises PartFailed when it does not start."""
    spec = ChildSpec(
        name=program.name,
        command=dying_with_parent(tuple(program.command)),
        log_file=home.paths.logs / f"{program.name}.log",
        environment=home.environment | program.environment,
        folder=REPOSITORY,
    )
    part = CommandService(
        make_spec=lambda: spec,
        question=lambda: answers_ok(program.ready_url),
        name=program.name,
        ready_timeout_s=_READY_TIMEOUT_S,
    )
    with pinned_to(cores), started(part):
        yield part.child.pid


def cpu_s(pid: int) -> float:
    """That the process and its children have spent so far, in user and system mode."""
    return sum(_own_cpu_s(each) for each in _family(pid))


def waited_s(pid: int) -> float:
    """How long the process's first thread, which runs its loop, was ready and found no core free,
    since it began (proc_pid_schedstat(5))."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def num_preempted(pid: int) -> int:
    """How often the process's first thread had to leave its core to another process, so far."""
    return _status(pid, "nonvoluntary_ctxt_switches")


@dataclass(slots=True)
class Neighbours:
    """What everybody but this process and its children does with the cores, from now on."""

    _began_s: float = field(default_factory=time.monotonic)
    _others_s: float = field(default_factory=lambda: _others_cpu_s())

    def num_cores(self) -> float:
        """On average so far."""
        return (_others_cpu_s() - self._others_s) / (time.monotonic() - self._began_s)

    def tell(self, report: Report, name: str) -> None:
        """So that one knows which of the figures taken meanwhile are the machine's, not ours."""
        num_cores = self.num_cores()
        is_quiet = num_cores <= MAX_NEIGHBOURS
        if not is_quiet:
            say(f"Others used {num_cores:.1f} cores meanwhile: do not trust these figures.")
        report.figure(name, num_cores, "cores of others", is_quiet=is_quiet)


def _others_cpu_s() -> float:
    """Also what a hypervisor gave to other machines."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    idle, waiting = fields[3:5]
    return (sum(fields) - idle - waiting) / _TICKS_PER_S - cpu_s(os.getpid())


def memory_mb(pid: int) -> float:
    """Resident, of the process and its children."""
    return sum(_status(each, "VmRSS") for each in _family(pid)) / 1024


def own_memory_mb(pid: int) -> float:
    """Likewise, without what processes share or have of files: it is there once, and comes and
    goes."""
    return sum(_status(each, "RssAnon") for each in _family(pid)) / 1024


def _family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(FileNotFoundError):  # it or a thread of it has just ended
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from _family(int(child))


def _own_cpu_s(pid: int) -> float:
    # The name, in brackets, may hold blanks.
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:  # it has just ended
        return 0.0
    fields = text.rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / _TICKS_PER_S


def _status(pid: int, name: str) -> int:
    """As proc_pid_status(5) names it: memory in kB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
