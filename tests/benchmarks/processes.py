"""The processes that a benchmark measures, started on their own cores, and their CPU and memory."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from caret.local.paths import REPOSITORY
from caret.local.processes.child_process import ChildSpec, dying_with_parent
from caret.local.processes.health_checks import is_responding
from caret.local.processes.service import CommandService
from tests.benchmarks.installation import Home, started
from tests.benchmarks.results import Report, say

Cores = frozenset[int]
MAX_NEIGHBOUR_CORES: Final = 0.1  # cores, on average: the background load of an idle machine
_READY_TIMEOUT_S: Final = 60.0
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


def split_cores() -> tuple[Cores, Cores]:
    """Return one core for the measured process, and the other cores for clients and engines.

    Raises SystemExit if there is only one core.
    """
    first, *other_cores = sorted(os.sched_getaffinity(0))
    if not other_cores:
        raise SystemExit("This needs two cores: one is reserved for the measured process.")
    return frozenset({first}), frozenset(other_cores)


@contextmanager
def pinned_to(cores: Cores) -> Iterator[None]:
    """Keep this thread, and the processes that it starts in this block, on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def move_to(cores: Cores, pid: int) -> None:
    """Move the process, its threads and its children to these cores."""
    for process_id in _process_tree(pid):
        # A process or thread may end during the loop.
        with suppress(FileNotFoundError, ProcessLookupError):
            for thread in Path(f"/proc/{process_id}/task").iterdir():
                os.sched_setaffinity(int(thread.name), cores)


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    command: Sequence[str]
    ready_url: str
    environment: dict[str, str]


@contextmanager
def running(home: Home, program: Program, *, cores: Cores) -> Iterator[int]:
    """Run the program and yield its process ID.

    Raises ServiceFailed if it does not start.
    """
    spec = ChildSpec(
        name=program.name,
        command=dying_with_parent(tuple(program.command)),
        log_file=home.paths.logs / f"{program.name}.log",
        environment=home.environment | program.environment,
        folder=REPOSITORY,
    )
    service = CommandService(
        make_spec=lambda: spec,
        ready_check=lambda: is_responding(program.ready_url),
        name=program.name,
        ready_timeout_s=_READY_TIMEOUT_S,
    )
    with pinned_to(cores), started(service):
        yield service.child.pid


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of the process and its children so far, in user and system mode.

    Children that have ended are included, if their parent has waited for them.
    """
    return sum(_own_cpu_s(process_id) for process_id in _process_tree(pid))


def waited_s(pid: int) -> float:
    """Return how long the process's first thread has been ready to run but found no free core.

    That thread runs the event loop. The time counts from the start of the process
    (proc_pid_schedstat(5)).
    """
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def num_preempted(pid: int) -> int:
    """Return how often the process's first thread was preempted so far."""
    return _status(pid, "nonvoluntary_ctxt_switches")


@dataclass(slots=True)
class Neighbours:
    """The CPU use of all other processes of the machine (not this one and its children).

    It is measured from the creation of this object.
    """

    _began_s: float = field(default_factory=time.monotonic)
    _cpu_s_before: float = field(default_factory=lambda: _others_cpu_s())

    def num_cores(self) -> float:
        """Return the cores used on average so far."""
        return (_others_cpu_s() - self._cpu_s_before) / (time.monotonic() - self._began_s)

    def report(self, report: Report, name: str) -> None:
        """Report whether the machine was quiet enough to trust the results."""
        num_cores = self.num_cores()
        is_quiet = num_cores <= MAX_NEIGHBOUR_CORES
        if not is_quiet:
            say(
                f"Other processes used {num_cores:.1f} cores meanwhile: the figures are unreliable."
            )
        report.figure(name, num_cores, "cores of others", is_quiet=is_quiet)


def _others_cpu_s() -> float:
    """Return the CPU seconds of other processes, including time stolen by a hypervisor."""
    first_line = Path("/proc/stat").read_text().partition("\n")[0]
    # The values are described in proc_stat(5).
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, first_line.split()[1:9])
    busy_ticks = user + nice + system + irq + softirq + steal
    return busy_ticks / _TICKS_PER_S - cpu_s(os.getpid())


def memory_mb(pid: int) -> float:
    """Return the resident memory of the process and its children."""
    return sum(_status(process_id, "VmRSS") for process_id in _process_tree(pid)) / 1024


def own_memory_mb(pid: int) -> float:
    """Return the resident memory of the process and its children, without shared and file pages.

    Shared pages exist only once for all processes, and the system can drop file pages at any time.
    """
    return sum(_status(process_id, "RssAnon") for process_id in _process_tree(pid)) / 1024


def _process_tree(pid: int) -> Iterator[int]:
    yield pid
    with suppress(FileNotFoundError):  # the process or a thread has just ended
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from _process_tree(int(child))


def _own_cpu_s(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:  # the process has just ended
        return 0.0
    # The second field, the name in brackets, may contain spaces.
    fields = text.rpartition(")")[2].split()
    # utime, stime, and the same of the children that were waited for (proc_pid_stat(5))
    return sum(map(int, fields[11:15])) / _TICKS_PER_S


def _status(pid: int, name: str) -> int:
    """Return a field of proc_pid_status(5); memory is in kB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
