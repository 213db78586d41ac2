"""The lock with which one supervisor at a time uses an installation's home folder."""

import os
from pathlib import Path

import pytest

from caret.local.errors import HomeInUse
from caret.local.paths import EmbeddedPaths
from caret.local.processes.pid_lock import HomeLock, read_supervisor_pid


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
