"""The home folder of the local installation: CARET_HOME, by default a folder in the repository."""

from pathlib import Path

import pytest

from caret.composition.config import read_data_plane_config
from caret.foundation.home_dir import find_home_folder
from caret.local.paths import home_from_environment

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("setting", [None, ""])
def test_the_default_home_is_in_the_repository(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str | None
) -> None:
    monkeypatch.delenv("CARET_HOME", raising=False)
    if setting is not None:
        monkeypatch.setenv("CARET_HOME", setting)
    monkeypatch.chdir(tmp_path)

    assert find_home_folder() == REPOSITORY / ".caret"


def test_a_relative_path_of_the_home_starts_at_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CARET_HOME", "mine")
    monkeypatch.chdir(tmp_path)

    assert find_home_folder() == tmp_path / "mine"


@pytest.mark.parametrize("setting", [None, ""])
def test_the_gateway_and_the_supervisor_use_the_same_default_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str | None
) -> None:
    monkeypatch.delenv("CARET_HOME", raising=False)
    if setting is not None:
        monkeypatch.setenv("CARET_HOME", setting)
    monkeypatch.setenv("CARET_ROOT_SECRET", "0" * 64)
    monkeypatch.setenv("REDIS_URL", "redis://localhost")
    monkeypatch.chdir(tmp_path)

    config = read_data_plane_config()

    assert config.journal_dir == home_from_environment().journal
    assert config.pools_file == home_from_environment().pools
