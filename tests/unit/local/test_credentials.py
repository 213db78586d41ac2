"""Passwords and secrets that `make up` generates for Postgres, Redis and Caret's programs."""

import stat
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

from caret.local.databases.credentials import write_credentials
from caret.local.errors import StartupError
from caret.local.paths import EmbeddedPaths


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedPaths:
    """Return the paths of a home that does not exist yet.

    Its sockets, which are usually in the temporary folder, are in this test's own folder.
    """
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return EmbeddedPaths(tmp_path / "home")


def _permission_bits(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_may_read_the_files(paths: EmbeddedPaths) -> None:
    write_credentials(paths)

    assert {_permission_bits(folder) for folder in (paths.home, paths.secrets, paths.sockets)} == {
        0o700
    }
    assert {_permission_bits(file) for file in paths.secrets.iterdir()} == {0o600}


def test_existing_credentials_are_kept(paths: EmbeddedPaths) -> None:
    write_credentials(paths)
    before = {file.name: file.read_text() for file in paths.secrets.iterdir()}

    write_credentials(paths)

    assert {file.name: file.read_text() for file in paths.secrets.iterdir()} == before


def test_database_urls_follow_a_moved_home(paths: EmbeddedPaths) -> None:
    write_credentials(paths)
    old = conninfo_to_dict(paths.app_database_url.read_text().strip())
    moved = EmbeddedPaths(paths.home.with_name("elsewhere"))
    paths.home.rename(moved.home)

    write_credentials(moved)

    new = conninfo_to_dict(moved.app_database_url.read_text().strip())
    assert new["password"] == old["password"]
    assert new["host"] == str(moved.sockets)
    assert new["host"] != old["host"]


def test_the_two_roles_have_different_passwords(paths: EmbeddedPaths) -> None:
    write_credentials(paths)

    app = conninfo_to_dict(paths.app_database_url.read_text().strip())
    owner = conninfo_to_dict(paths.owner_database_url.read_text().strip())
    assert (app["user"], owner["user"]) == ("caret_app", "caret_owner")
    assert app["password"] != owner["password"]


def test_the_redis_url_names_a_socket_and_a_password(paths: EmbeddedPaths) -> None:
    write_credentials(paths)

    parts = urlsplit(paths.redis_url.read_text().strip())
    assert parts.scheme == "unix"
    assert parts.password
    assert Path(parts.path).parent == paths.sockets


def test_a_link_in_place_of_the_socket_folder_is_rejected(paths: EmbeddedPaths) -> None:
    paths.sockets.symlink_to(paths.sockets.parent)

    with pytest.raises(StartupError, match="does not belong to you"):
        write_credentials(paths)
