"""Files that a repository pins as context for all its users, listed in its `.caret.toml`.

    pinned_files = ["docs/style.md", "src/shop/types.py"]

The saved files are read, not the unsaved text in the editor. So all users at the same commit send
the same text, and the engine computes it only once if the users share the prefix cache.
"""

import logging
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caret_ls.clock import LoopClock
from caret_ls.frames import FrameFile
from caret_ls.git_repository import Repository
from caret_ls.recent_files import MAX_FILE_CHARS, MAX_FILES
from caret_ls.repository_files import read_repository_file

CONFIG_NAME: Final = ".caret.toml"
_MAX_CONFIG_BYTES: Final = 64 * 1024
_MAX_AGE_S: Final = 5.0  # after this time, the files are read again
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _CachedFiles:
    files: tuple[FrameFile, ...]
    read_s: float  # time of reading, in monotonic seconds


class PinnedFiles:
    """The pinned files of each repository, cached for _MAX_AGE_S."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self._cached: dict[Repository, _CachedFiles] = {}

    def list(self, repository: Repository | None) -> tuple[FrameFile, ...]:
        """Return the pinned files of a repository, in the order of `.caret.toml`.

        Only the first MAX_FILES paths count. Of these, files that cannot be read, and secret,
        generated, blank and long files are left out. The caller removes excluded files.
        """
        if repository is None:
            return ()
        now_s = self._clock.monotonic_s()
        cached = self._cached.get(repository)
        if cached is None or now_s - cached.read_s >= _MAX_AGE_S:
            cached = self._cached[repository] = _CachedFiles(_read_files(repository.root), now_s)
        return cached.files


def _read_files(root: Path) -> tuple[FrameFile, ...]:
    paths = dict.fromkeys(_read_paths(root))  # without duplicates, in the same order
    files = (_read_file(root, path) for path in list(paths)[:MAX_FILES])
    return tuple(file for file in files if file is not None)


def _read_paths(root: Path) -> list[str]:
    """Return the paths in `.caret.toml`. If the file is invalid, log this and return [].

    If there is no such file, also return [].
    """
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
    file = read_repository_file(root, Path(path), max_chars=MAX_FILE_CHARS)
    if file is None:
        return None
    name, text = file
    return FrameFile(name, text, edited_at=0.0, is_pinned=True)  # 0: the user has not edited it
