"""The clients of a run: whose they are, their process, and what they have noted so far."""

import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from caret.embedded.paths import REPOSITORY
from caret.embedded.process import dying_with_parent
from tests.chaos.clients import Load, Party
from tests.chaos.notes import Note, read_notes
from tests.chaos.world import World

if TYPE_CHECKING:
    from tests.cast import Company

_MAX_RATE_EACH: Final = 40.0  # of a company's five people, whom policies allow 20 a second each
_QUIET_SHARE: Final = 0.1
_MIN_QUIET_RATE: Final = 2.0
_EDITORS_PER_RATE: Final = 2.0  # enough to go on while some wait for seconds
_SETTLE_S: Final = 30.0


@dataclass(slots=True)
class Clients:
    """Notes are read when asked for, and kept."""

    file: Path
    process: subprocess.Popen[bytes]
    quiet: str  # tenant
    notes: list[Note] = field(default_factory=list)
    offset: int = 0

    def read(self) -> Sequence[Note]:
        """All so far."""
        if self.file.exists():
            more, self.offset = read_notes(self.file, offset=self.offset)
            self.notes += more
        return self.notes

    def since(self, at_s: float) -> list[Note]:
        return [note for note in self.read() if note.at_s >= at_s]

    def stop(self) -> None:
        """Once all that is under way has ended."""
        self.process.terminate()
        self.process.wait(timeout=_SETTLE_S)
        self.read()


@contextmanager
def clients(world: World, *, rate: float) -> Iterator[Clients]:
    """A quiet tenant, and busy ones with the rest of `rate` requests a second."""
    quiet_rate = max(_MIN_QUIET_RATE, rate * _QUIET_SHARE)
    num_busy = math.ceil((rate - quiet_rate) / _MAX_RATE_EACH)
    quiet = new_party("quiet", rate=quiet_rate)
    busy = [new_party(f"busy{n}", rate=(rate - quiet_rate) / num_busy) for n in range(num_busy)]
    with asking(world, (quiet, *busy)) as found:
        yield found


@contextmanager
def asking(world: World, parties: Sequence[Party]) -> Iterator[Clients]:
    """The first of them is the quiet one."""
    notes = world.home.paths.home / f"notes-{time.time_ns()}.jsonl"
    load = Load(world.gateway_urls(), tuple(parties), str(notes))
    log = (world.home.paths.logs / "clients.log").open("ab")
    command = (sys.executable, "-m", "tests.chaos.clients", msgspec.json.encode(load).decode())
    with log, world.hosts["clients"].entered():
        process = subprocess.Popen(
            dying_with_parent(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=world.environment,
            cwd=REPOSITORY,
        )
    try:
        yield Clients(notes, process, quiet=parties[0].tenant)
    finally:
        process.kill()
        process.wait()


def new_company(name: str) -> "Company":
    # Imported here: Django is set up by the world.
    from tests.cast import ACME, make_company

    return make_company(name, ACME)


def new_party(name: str, *, rate: float) -> Party:
    """A company in the control plane, each of whose people has a key."""
    from tests.cast import make_key

    company = new_company(name)
    keys = tuple(make_key(company, person).text for person in company.people.values())
    num_editors = max(len(keys), math.ceil(rate * _EDITORS_PER_RATE))
    return Party(company.tenant_id, keys, rate, num_editors)
