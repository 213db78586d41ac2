"""Selects other files as context: the last edited ones, then the last viewed ones. Pure.

Of a long file, only the last change and its surrounding lines are used.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from caret_ls.frames import FrameFile

MAX_FILES: Final = 8
MAX_CHARS: Final = 160_000  # total; the engine reads a few thousand tokens of them
MAX_FILE_CHARS: Final = 40_000  # of a longer file, only the last change is used
_AROUND_CHARS: Final = 8_000  # before and after a change


@dataclass(slots=True)
class _RecentFile:
    path: str
    edited_at: float = 0.0  # Unix seconds; 0: never edited
    changed_at: int | None = None  # offset of the last change, in characters; None: never


class RecentFiles:
    """Recent files. A closed file is forgotten: its text must not be read any more."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, _RecentFile] = OrderedDict()  # the latest is last

    def on_open(self, uri: str, path: str) -> None:
        self._files[uri] = _RecentFile(path)

    def on_view(self, uri: str) -> None:
        if uri in self._files:
            self._files.move_to_end(uri)

    def on_edit(self, uri: str, *, at: int, now_s: float) -> None:
        file = self._files.get(uri)
        if file is not None:
            file.edited_at, file.changed_at = now_s, at
            self._files.move_to_end(uri)

    def on_close(self, uri: str) -> None:
        self._files.pop(uri, None)

    def list(self, own: str, read_text: Callable[[str], str | None]) -> list[FrameFile]:
        """Return files as context, the latest first, without the file of the URI `own`.

        `read_text` returns a file's text, or None if it must not be sent. It is not called after
        MAX_FILES files were selected.
        """
        files: list[FrameFile] = []
        room = MAX_CHARS
        latest_first = reversed(self._files.items())
        for uri, file in sorted(latest_first, key=lambda item: -item[1].edited_at):
            text = read_text(uri) if uri != own else None
            if text is None:
                continue
            text = _changed_part(text, file.changed_at)
            if not text.strip() or len(text) > room:
                continue
            room -= len(text)
            files.append(FrameFile(file.path, text, file.edited_at))
            if len(files) == MAX_FILES:
                break
        return files


def _changed_part(text: str, changed_at: int | None) -> str:
    if len(text) <= MAX_FILE_CHARS:
        return text
    if changed_at is None:
        return ""
    start = text.rfind("\n", 0, max(changed_at - _AROUND_CHARS, 0)) + 1
    end = text.find("\n", changed_at + _AROUND_CHARS)
    return text[start : end if end >= 0 else None]
