"""Reads the saved files of a repository that are suitable as context."""

from pathlib import Path

from caret_ls.file_kind import FileKind, detect_file_kind
from caret_ls.frames import MAX_NAME_CHARS


def read_repository_file(root: Path, path: Path, *, max_chars: int) -> tuple[str, str] | None:
    """Return the file's path in the repository and its text; None if it is not suitable.

    A file is not suitable if it is longer than `max_chars`, blank, secret, generated, not UTF-8,
    not readable or outside of `root`, or if its path is too long.

    A repository by somebody else must not make the editor send other files of the computer. So
    symbolic links are resolved before the check that the file is in `root`.
    """
    try:
        resolved_root = root.resolve()
        file = (resolved_root / path).resolve()
        if not file.is_relative_to(resolved_root) or not file.is_file():
            return None
        with file.open(encoding="utf-8", newline="") as stream:  # "": keeps CRLF
            text = stream.read(max_chars + 1)
    except (OSError, ValueError):  # ValueError: not UTF-8, or a path with a null character
        return None
    name = file.relative_to(resolved_root).as_posix()
    is_suitable = (
        len(text) <= max_chars
        and len(name) <= MAX_NAME_CHARS
        and detect_file_kind(name, text) is FileKind.NORMAL
    )
    return (name, text) if is_suitable and text.strip() else None
