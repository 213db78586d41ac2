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
        self._file = lock_file(paths)
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
        os.close(self._descriptor)


def read_supervisor_pid(paths: EmbeddedPaths) -> int | None:
    """Return the PID of the supervisor that holds the lock; None if no supervisor holds it.

    Raises HomeInUse if the supervisor has not written its PID yet.
    """
    try:
        descriptor = os.open(lock_file(paths), os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        if _try_lock(descriptor):
            return None  # closing the descriptor releases the lock
        return _await_pid(descriptor)
    finally:
        os.close(descriptor)


def lock_file(paths: EmbeddedPaths) -> Path:
    return paths.home / "supervisor.lock"


def _lock_with_retries(descriptor: int) -> bool:
    """Try for 0.4 s: `read_supervisor_pid` of another process may hold the lock briefly."""
    for _ in range(_ATTEMPTS):
        if _try_lock(descriptor):
            return True
        time.sleep(_PAUSE_S)
    return False


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _await_pid(descriptor: int) -> int:
    """Read the holder's PID, which the holder writes right after it has acquired the lock.

    Raises HomeInUse if the PID does not appear within 0.4 s.
    """
    for _ in range(_ATTEMPTS):
        text = os.pread(descriptor, 32, 0).decode().strip()
        if text.isdigit():
            return int(text)
        time.sleep(_PAUSE_S)
    raise HomeInUse("Another supervisor is starting in CARET_HOME. Wait, and try again.")
