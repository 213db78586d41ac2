"""Checks the free disk space before anything is written."""

import shutil
from pathlib import Path

from caret.local.errors import NoDiskSpace

# A new Postgres takes 40 MB; its write-ahead log and the services' logs grow under load.
MIN_FREE_BYTES = 500 * 1024 * 1024


def require_room(folder: Path, *, min_free_bytes: int = MIN_FREE_BYTES) -> None:
    """Check the free space on the disk of `folder`.

    Raises NoDiskSpace.
    """
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < min_free_bytes:
        raise NoDiskSpace(
            f"The disk of {folder} has {free_bytes // 2**20} MB free; Caret needs"
            f" {min_free_bytes // 2**20} MB. Free some, or set CARET_HOME to another disk."
        )
