"""The database that `manage.py backup` and `manage.py restore` use."""

from pathlib import Path

import pytest

from caret.foundation.environment import BadSetting
from caret.local.databases.backup_target import choose_backup_server
from caret.local.paths import EmbeddedPaths


def test_a_setting_names_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_BACKUP_DATABASE_URL", "postgresql://u:p@host/caret")

    server = choose_backup_server(EmbeddedPaths(tmp_path))

    assert server.address == "postgresql://u:p@host/caret"
    assert server.programs is None  # the Postgres programs on the PATH


def test_without_the_setting_there_must_be_a_local_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CARET_BACKUP_DATABASE_URL", raising=False)

    with pytest.raises(BadSetting, match="CARET_BACKUP_DATABASE_URL"):
        choose_backup_server(EmbeddedPaths(tmp_path))
