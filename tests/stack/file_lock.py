"""A lock between test processes, for what they install once and share."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_lock(file: Path) -> Iterator[None]:
    """Hold the lock until the block ends. The kernel releases it if this process ends before."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
