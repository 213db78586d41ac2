"""The lock with which one supervisor at a time uses an installation's home folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from caret.local.errors import HomeInUse
from caret.local.paths import EmbeddedPaths
from caret.local.processes.pid_lock import HomeLock, build_lock_path, read_supervisor_pid


@contextmanager
def lock_without_pid(paths: EmbeddedPaths, kind: int) -> Iterator[int]:
    """Lock the file as another process would, but write no PID. Yield the file's descriptor."""
    descriptor = os.open(build_lock_path(paths), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, kind)
        yield descriptor
    finally:
        os.close(descriptor)


def test_a_new_home_has_no_supervisor(tmp_path: Path) -> None:
    assert read_supervisor_pid(EmbeddedPaths(tmp_path)) is None


def test_a_locked_home_names_the_process_of_its_supervisor(tmp_path: Path) -> None:
    paths = EmbeddedPaths(tmp_path)

    with HomeLock(paths):
        assert read_supervisor_pid(paths) == os.getpid()


def test_a_second_supervisor_is_rejected(tmp_path: Path) -> None:
    paths = EmbeddedPaths(tmp_path)

    with HomeLock(paths), pytest.raises(HomeInUse):
        HomeLock(paths).__enter__()


def test_the_home_is_free_after_the_supervisor_has_ended(tmp_path: Path) -> None:
    paths = EmbeddedPaths(tmp_path)
    with HomeLock(paths):
        pass

    with HomeLock(paths):
        assert read_supervisor_pid(paths) == os.getpid()


def test_the_pid_of_an_earlier_supervisor_is_not_read_while_the_next_one_starts(
    tmp_path: Path,
) -> None:
    paths = EmbeddedPaths(tmp_path)
    with HomeLock(paths):
        pass

    with lock_without_pid(paths, fcntl.LOCK_EX), pytest.raises(HomeInUse):
        read_supervisor_pid(paths)


def test_the_pid_of_a_crashed_supervisor_is_not_read_while_another_process_reads(
    tmp_path: Path,
) -> None:
    paths = EmbeddedPaths(tmp_path)
    build_lock_path(paths).write_text(f"{os.getpid()}\n")

    with lock_without_pid(paths, fcntl.LOCK_SH):
        assert read_supervisor_pid(paths) is None


def test_the_pid_of_a_crashed_supervisor_is_not_read_while_the_next_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = EmbeddedPaths(tmp_path)
    build_lock_path(paths).write_text("1\n")  # left by the crashed supervisor

    def finish_start(_pause_s: float) -> None:
        build_lock_path(paths).write_text(f"{os.getpid()}\n")

    monkeypatch.setattr("caret.local.processes.pid_lock.time.sleep", finish_start)
    with lock_without_pid(paths, fcntl.LOCK_EX):
        assert read_supervisor_pid(paths) == os.getpid()


def test_a_supervisor_that_is_just_ending_is_awaited(tmp_path: Path) -> None:
    paths = EmbeddedPaths(tmp_path)

    with lock_without_pid(paths, fcntl.LOCK_EX) as descriptor:
        Timer(0.1, fcntl.flock, [descriptor, fcntl.LOCK_UN]).start()

        assert read_supervisor_pid(paths) is None
