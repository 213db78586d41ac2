"""Private temporary folders for writers that need files on disk before encryption.

A killed writer cannot remove its folder. Each folder is locked while its process lives, and the
next writer removes the folders that are no longer locked.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PREFIX: Final = "caret-export-"
_LOCK: Final = "lock"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a folder that only its owner can read, and remove it at the end. Raises OSError."""
    remove_abandoned()
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        folder = Path(name)
        with (folder / _LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder


def remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if folder.is_dir() and folder.stat().st_uid == os.getuid() and _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Return whether no process holds the folder's lock.

    A folder without a lock file is new, and its process is alive.
    """
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):
        return False
    return True
