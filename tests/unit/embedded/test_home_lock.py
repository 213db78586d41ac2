import os
from pathlib import Path

import pytest

from caret.local.errors import HomeInUse
from caret.local.paths import EmbeddedPaths
from caret.local.processes.pid_lock import HomeLock, supervisor_pid


def test_nobody_holds_a_fresh_home(tmp_path: Path) -> None:
    assert supervisor_pid(EmbeddedPaths(tmp_path)) is None


def test_the_holder_says_its_number(tmp_path: Path) -> None:
    paths = EmbeddedPaths(tmp_path)

    with HomeLock(paths):
        assert supervisor_pid(paths) == os.getpid()


def test_a_second_supervisor_is_refused(tmp_path: Path) -> None:
    paths = EmbeddedPaths(tmp_path)

    with HomeLock(paths), pytest.raises(HomeInUse):
        HomeLock(paths).__enter__()


def test_the_home_is_free_after_the_holder(tmp_path: Path) -> None:
    paths = EmbeddedPaths(tmp_path)
    with HomeLock(paths):
        pass

    with HomeLock(paths):
        assert supervisor_pid(paths) == os.getpid()
