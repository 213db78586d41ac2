"""The notes of all clients of a run, in one list, in the order in which they were read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.client_log import Note, read_notes


@dataclass(slots=True)
class Notebook:
    """Follows the logs of clients."""

    notes: list[Note] = field(default_factory=list)
    _offsets: dict[Path, int] = field(default_factory=dict)

    def follow(self, file: Path) -> None:
        """Read this log, too, from its beginning."""
        self._offsets[file] = 0

    def read(self) -> Sequence[Note]:
        """Read new notes and return all."""
        for file, offset in self._offsets.items():
            if file.exists():
                new_notes, self._offsets[file] = read_notes(file, offset=offset)
                self.notes += new_notes
        return self.notes

    def since(self, at_s: float) -> list[Note]:
        """Return the notes of requests that were sent at this time or later."""
        return [note for note in self.read() if note.at_s >= at_s]
