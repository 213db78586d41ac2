"""A lock that allows one supervisor per CARET_HOME; the kernel releases it when the holder dies."""

import fcntl
import os
import time
from pathlib import Path
from typing import Self

from caret.local.errors import HomeInUse
from caret.local.paths import EmbeddedPaths

_ATTEMPTS = 20
_PAUSE_S = 0.02


class HomeLock:
    """The lock of a CARET_HOME. Its file contains the supervisor's PID."""

    def __init__(self, paths: EmbeddedPaths) -> None:
        self._file = build_lock_path(paths)
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Acquire the lock.

        Raises HomeInUse.
        """
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600)
        if not _lock_with_retries(descriptor):
            os.close(descriptor)
            raise HomeInUse(f"Caret already runs in {self._file.parent}. Stop it with `make down`.")
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor
        return self

    def __exit__(self, *_: object) -> None:
        assert self._descriptor is not None
        try:
            # The next supervisor locks the file before it writes its own PID. Until then, nobody
            # may read this PID. (It stays in the file if the supervisor crashes.)
            os.ftruncate(self._descriptor, 0)
        finally:
            os.close(self._descriptor)


def read_supervisor_pid(paths: EmbeddedPaths) -> int | None:
    """Return the PID of the supervisor that holds the lock; None if no supervisor holds it.

    While a supervisor starts or ends, the file has no PID for a moment, or still the PID of an
    earlier supervisor that crashed. So the same PID must be read twice. Raises HomeInUse if this
    takes longer than 0.4 s.
    """
    try:
        descriptor = os.open(build_lock_path(paths), os.O_RDWR)
    except FileNotFoundError:
        return None
    previous_text = ""
    try:
        for _ in range(_ATTEMPTS):
            # A shared lock: other processes that read the PID at the same time do not prevent it.
            if _try_lock(descriptor, fcntl.LOCK_SH):
                return None  # closing the descriptor releases the lock
            text = os.pread(descriptor, 32, 0).decode().strip()
            if text.isdigit() and text == previous_text:
                return int(text)
            previous_text = text
            time.sleep(_PAUSE_S)
        raise HomeInUse("A supervisor is starting or ending in CARET_HOME. Wait, and try again.")
    finally:
        os.close(descriptor)


def build_lock_path(paths: EmbeddedPaths) -> Path:
    return paths.home / "supervisor.lock"


def _lock_with_retries(descriptor: int) -> bool:
    """Try for 0.4 s: `read_supervisor_pid` of another process may hold the lock briefly."""
    for _ in range(_ATTEMPTS):
        if _try_lock(descriptor, fcntl.LOCK_EX):
            return True
        time.sleep(_PAUSE_S)
    return False


def _try_lock(descriptor: int, kind: int) -> bool:
    """Acquire a lock of this kind, LOCK_EX or LOCK_SH; return False if another lock prevents it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
