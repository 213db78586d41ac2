"""Room on the disk, asked before anything is written."""

import shutil
from pathlib import Path

from caret.local.errors import NoDiskSpace

# A fresh Postgres takes 40 MB; its write-ahead log and the parts' logs grow under load.
MIN_FREE_BYTES = 500 * 1024 * 1024


def require_room(folder: Path, *, min_free_bytes: int = MIN_FREE_BYTES) -> None:
    """Raises NoDiskSpace."""
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < min_free_bytes:
        raise NoDiskSpace(
            f"The disk of {folder} has {free_bytes // 2**20} MB free; Caret needs"
            f" {min_free_bytes // 2**20} MB. Free some, or set CARET_HOME to a folder elsewhere."
        )
