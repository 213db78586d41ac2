"""The file in which `make up` describes the running installation."""

import stat
from pathlib import Path

from caret.local.state_file import RunningInstallation, read_up_file, write_up_file

_ENTRY: RunningInstallation = {
    "console_url": "http://127.0.0.1:8400",
    "gateway_url": "http://127.0.0.1:8401",
    "pools": [],
    "tenants": [],
    "operator": None,
    "supervisor_pid": 1,
}


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    file = tmp_path / "up.json"
    file.touch(mode=0o644)

    write_up_file(file, _ENTRY)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_written_file_can_be_read(tmp_path: Path) -> None:
    write_up_file(tmp_path / "up.json", _ENTRY)

    assert read_up_file(tmp_path / "up.json") == _ENTRY


def test_a_missing_file_means_that_nothing_runs(tmp_path: Path) -> None:
    assert read_up_file(tmp_path / "up.json") is None
