"""Programs that a benchmark measures: started on cores of their own, and what they cost."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caret.embedded.http_health import answers_ok
from caret.embedded.part import ProgramPart
from caret.embedded.paths import REPOSITORY
from caret.embedded.process import ChildSpec, dying_with_parent
from tests.benchmarks.installation import Home, started

Cores = frozenset[int]
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
    part = ProgramPart(
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


def memory_mb(pid: int) -> float:
    """Resident, of the process and its children."""
    return sum(_resident_kb(each) for each in _family(pid)) / 1024


def _family(pid: int) -> Iterator[int]:
    yield pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for child in children:
        yield from _family(int(child))


def _own_cpu_s(pid: int) -> float:
    # The name, in brackets, may hold blanks.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / _TICKS_PER_S


def _resident_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
