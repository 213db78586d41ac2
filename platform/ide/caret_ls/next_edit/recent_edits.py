"""Records the user's recent edits, from which the model predicts the next one. Pure.

Changes of the same or adjacent lines become one edit, until the edit is long or the user edits
another place. Each edit consists of whole lines. Its line number is the one at the time of the
edit.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from caret_ls.frames import MAX_NAME_CHARS
from caret_ls.git_repository import Repository
from caret_ls.text_document import LineChange
from caret_ls.workspace import OpenFile, replace_surrogates

MAX_EDITS: Final = 16
MAX_BYTES: Final = 8 * 1024  # of all edits together, in UTF-8
_MAX_MERGED_BYTES: Final = 2 * 1024  # of one merged edit; a longer one would displace the others


@dataclass(frozen=True, slots=True)
class RecordedEdit:
    """An edit that replaced the lines `removed` by the lines `added`."""

    path: str  # in the repository
    start_line: int  # from 0
    removed: str  # whole lines with their ends
    added: str

    def to_fields(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "start_line": self.start_line,
            "removed": self.removed,
            "added": self.added,
        }

    @property
    def num_bytes(self) -> int:
        return _count_bytes((self.path, self.removed, self.added))


@dataclass(slots=True)
class _Hunk:
    """A part of a file that further changes may extend."""

    uri: str
    path: str
    repository: Repository | None  # None: the file is in no repository
    start_line: int  # from 0
    removed: list[str]  # its lines before the first change
    added: list[str]  # its lines after the last change

    def merge(self, change: LineChange) -> bool:
        """Merge a change of the same file.

        Return False if the change is not adjacent, or the merged hunk would be too long.
        """
        # The line after this hunk, and the line after the change, as counted before the change.
        end = self.start_line + len(self.added)
        change_end = change.start_line + len(change.old_lines)
        if change.start_line > end or change_end < self.start_line:
            return False
        # The lines that the change touches above and below this hunk. They were not changed before.
        above = list(change.old_lines[: max(self.start_line - change.start_line, 0)])
        below = list(change.old_lines[len(change.old_lines) - max(change_end - end, 0) :])
        removed = [*above, *self.removed, *below]
        added = [*above, *self.added, *below]
        start_line = min(self.start_line, change.start_line)
        start = change.start_line - start_line
        added[start : start + len(change.old_lines)] = change.new_lines
        if _count_bytes(removed) + _count_bytes(added) > _MAX_MERGED_BYTES:
            return False
        self.start_line, self.removed, self.added = start_line, removed, added
        return True

    def to_edit(self) -> RecordedEdit | None:
        """Return the edit without equal lines at its start and end; None if all lines are equal."""
        start = _count_common(self.removed, self.added)
        removed, added = self.removed[start:], self.added[start:]
        num_same = _count_common(removed[::-1], added[::-1])
        removed, added = removed[: len(removed) - num_same], added[: len(added) - num_same]
        if not removed and not added:
            return None
        removed_text, added_text = map(replace_surrogates, ("".join(removed), "".join(added)))
        return RecordedEdit(self.path, self.start_line + start, removed_text, added_text)


class RecentEdits:
    def __init__(self) -> None:
        self._hunks: deque[_Hunk] = deque(maxlen=MAX_EDITS)  # the newest is last
        self._is_open = False  # whether the newest hunk may be extended

    def record(self, file: OpenFile, change: LineChange) -> None:
        """Record a change, unless it is longer than MAX_BYTES.

        Call it for each change of a file that may be sent.
        """
        last = self._hunks[-1] if self._hunks and self._is_open else None
        if last is not None and last.uri == file.uri and last.merge(change):
            return
        self._is_open = _count_bytes((*change.old_lines, *change.new_lines)) <= MAX_BYTES
        if self._is_open:
            old_lines, new_lines = list(change.old_lines), list(change.new_lines)
            self._hunks.append(
                _Hunk(file.uri, file.path, file.repository, change.start_line, old_lines, new_lines)
            )

    def on_close(self, uri: str) -> None:
        """End the edit in progress: the file may have other lines when it is opened again."""
        if self._hunks and self._hunks[-1].uri == uri:
            self._is_open = False

    def list(
        self, repository: Repository | None, is_allowed: Callable[[str], bool]
    ) -> list[RecordedEdit]:
        """Return the newest edits in a repository, oldest first: at most MAX_BYTES together.

        `is_allowed` tells whether a path may be sent. `repository` is None for files outside of
        repositories.
        """
        edits: list[RecordedEdit] = []
        num_bytes_left = MAX_BYTES
        for hunk in reversed(self._hunks):
            edit = hunk.to_edit()
            is_sendable = len(hunk.path) <= MAX_NAME_CHARS and is_allowed(hunk.path)
            if edit is None or hunk.repository != repository or not is_sendable:
                continue
            num_bytes_left -= edit.num_bytes
            if num_bytes_left < 0:
                break
            edits.append(edit)
        return edits[::-1]


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of lines that are the same at the start."""
    return next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _count_bytes(texts: Sequence[str]) -> int:
    return sum(len(text.encode(errors="surrogatepass")) for text in texts)
