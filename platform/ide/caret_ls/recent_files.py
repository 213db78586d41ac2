"""Selects other open files as context: first those last edited, then those last viewed. Pure.

Of a long file, only the last change and the lines around it are used.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from caret_ls.frames import FrameFile

MAX_FILES: Final = 8
MAX_CHARS: Final = 160_000  # of all files together; a few thousand tokens of them fit the prompt
MAX_FILE_CHARS: Final = 40_000  # of a longer file, only a part is used
_AROUND_CHARS: Final = 8_000  # before and after a change


@dataclass(slots=True)
class _RecentFile:
    path: str  # in the repository
    edited_at: float = 0.0  # Unix seconds; 0: not edited since it was opened
    change_offset: int | None = None  # of the last change, in characters; None: not edited


class RecentFiles:
    """The open files by recency. A closed file is forgotten, because its text is not known."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, _RecentFile] = OrderedDict()  # the latest is last

    def on_open(self, uri: str, path: str) -> None:
        self._files[uri] = _RecentFile(path)

    def on_view(self, uri: str) -> None:
        """Note that the user is in the file."""
        if uri in self._files:
            self._files.move_to_end(uri)

    def on_edit(self, uri: str, *, at: int, now_s: float) -> None:
        """Note an edit at a character offset; `now_s` is the Unix time in seconds."""
        file = self._files.get(uri)
        if file is not None:
            file.edited_at, file.change_offset = now_s, at
            self._files.move_to_end(uri)

    def on_close(self, uri: str) -> None:
        self._files.pop(uri, None)

    def list(self, own_uri: str, read_text: Callable[[str], str | None]) -> list[FrameFile]:
        """Return files as context, the latest first, without the file `own_uri`.

        `read_text` returns the text of the file with a URI, or None if it must not be sent. It is
        not called any more when MAX_FILES files are selected.
        """
        files: list[FrameFile] = []
        num_chars_left = MAX_CHARS
        latest_first = reversed(self._files.items())
        # Sorted by the last edit. The sort is stable: files that were not edited stay in the order
        # of their last view. An item is a URI and a file.
        for uri, file in sorted(latest_first, key=lambda item: -item[1].edited_at):
            text = read_text(uri) if uri != own_uri else None
            if text is None:
                continue
            text = _changed_part(text, file.change_offset)
            if not text.strip() or len(text) > num_chars_left:
                continue
            num_chars_left -= len(text)
            files.append(FrameFile(file.path, text, file.edited_at))
            if len(files) == MAX_FILES:
                break
        return files


def _changed_part(text: str, change_offset: int | None) -> str:
    """Return a short text as it is, and of a long one the lines around the last change.

    A long text without a change gives "".
    """
    if len(text) <= MAX_FILE_CHARS:
        return text
    if change_offset is None:
        return ""
    start = text.rfind("\n", 0, max(change_offset - _AROUND_CHARS, 0)) + 1
    end = text.find("\n", change_offset + _AROUND_CHARS)
    return text[start : end if end >= 0 else None]
