"""Files that a repository pins as context for all its users, listed in its `.caret.toml`.

    pinned_files = ["docs/style.md", "src/shop/types.py"]

The saved files are read, not the editor's unsaved text. All users at one commit then send the same
text, and the engine computes it only once for them.
"""

import logging
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caret_ls.clock import LoopClock
from caret_ls.file_kind import FileKind, detect_file_kind
from caret_ls.frames import MAX_NAME_CHARS, FrameFile
from caret_ls.git_repository import Repository
from caret_ls.recent_files import MAX_FILE_CHARS, MAX_FILES

CONFIG_NAME: Final = ".caret.toml"
_MAX_CONFIG_BYTES: Final = 64 * 1024
_MAX_AGE_S: Final = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _CachedFiles:
    files: tuple[FrameFile, ...]
    read_s: float  # monotonic seconds


class PinnedFiles:
    """The pinned files by repository, read again after a few seconds."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self._cached: dict[Repository, _CachedFiles] = {}

    def list(self, repository: Repository | None) -> tuple[FrameFile, ...]:
        """Return the pinned files in the order of the list, without those that must not be sent."""
        if repository is None:
            return ()
        now_s = self._clock.monotonic_s()
        cached = self._cached.get(repository)
        if cached is None or now_s - cached.read_s >= _MAX_AGE_S:
            cached = self._cached[repository] = _CachedFiles(_read_files(repository.root), now_s)
        return cached.files


def _read_files(root: Path) -> tuple[FrameFile, ...]:
    paths = dict.fromkeys(_read_paths(root))
    files = (_read_file(root, path) for path in list(paths)[:MAX_FILES])
    return tuple(file for file in files if file is not None)


def _read_paths(root: Path) -> list[str]:
    try:
        with (root / CONFIG_NAME).open("rb") as file:
            config = tomllib.loads(file.read(_MAX_CONFIG_BYTES).decode("utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError):  # ValueError includes syntax errors
        _log.warning("pinned_files.invalid_config")
        return []
    paths = config.get("pinned_files", [])
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        _log.warning("pinned_files.invalid_list")
        return []
    return paths


def _read_file(root: Path, path: str) -> FrameFile | None:
    """Return the file; None if it is long, secret, generated, or outside the repository.

    A foreign repository must not make the editor send other files of the computer, not even by a
    symbolic link.
    """
    try:
        resolved_root = root.resolve()
        file = (resolved_root / path).resolve()
        if not file.is_relative_to(resolved_root) or not file.is_file():
            return None
        with file.open(encoding="utf-8", newline="") as stream:
            text = stream.read(MAX_FILE_CHARS + 1)
    except (OSError, ValueError):  # ValueError: not UTF-8, or a path with a null character
        return None
    name = file.relative_to(resolved_root).as_posix()
    is_suitable = (
        len(text) <= MAX_FILE_CHARS
        and len(name) <= MAX_NAME_CHARS
        and detect_file_kind(name, text) is FileKind.NORMAL
    )
    return FrameFile(name, text, 0.0, is_pinned=True) if is_suitable and text.strip() else None
