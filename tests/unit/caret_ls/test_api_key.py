"""The API key of the language server: the places in which it is found and stored."""

import logging
import sys
from pathlib import Path
from types import ModuleType

import pytest

from caret_ls.api_key import ask_keyring, find_key, find_key_file_open_to_others, store_key

URL = "https://caret.example.org"


def find(
    folder: Path, environment: dict[str, str] | None = None, *, keyring_key: str | None = None
) -> str | None:
    return find_key(environment or {}, folder, gateway_url=URL, ask_keyring=lambda _: keyring_key)


def key_file(folder: Path, text: str, *, permissions: int = 0o600) -> Path:
    file = folder / "key"
    file.write_text(text)
    file.chmod(permissions)
    return file


def test_without_any_source_there_is_no_key(tmp_path: Path) -> None:
    assert find(tmp_path) is None


def test_the_environment_overrides_the_keyring_and_the_keyring_the_file(tmp_path: Path) -> None:
    key_file(tmp_path, "from file\n")

    assert find(tmp_path) == "from file"
    assert find(tmp_path, keyring_key="from keyring") == "from keyring"
    assert (
        find(tmp_path, {"CARET_API_KEY": " from environment\n"}, keyring_key="x")
        == "from environment"
    )


def test_the_environment_may_name_the_key_file(tmp_path: Path) -> None:
    file = key_file(tmp_path, "named\n")

    assert find(tmp_path / "other", {"CARET_API_KEY_FILE": str(file)}) == "named"


@pytest.mark.parametrize("permissions", [0o644, 0o640, 0o604, 0o660])
def test_a_key_file_readable_by_others_is_ignored(
    tmp_path: Path, permissions: int, caplog: pytest.LogCaptureFixture
) -> None:
    key_file(tmp_path, "cpk_live_secret", permissions=permissions)

    with caplog.at_level(logging.INFO, logger="caret_ls"):
        assert find(tmp_path) is None

    assert "key.file_open_to_others" in caplog.text
    assert "cpk_live" not in caplog.text


def test_a_key_file_that_others_can_read_is_found(tmp_path: Path) -> None:
    private = key_file(tmp_path, "private")
    environment = {"CARET_API_KEY_FILE": str(private)}
    assert find_key_file_open_to_others(environment, tmp_path / "other") is None

    private.chmod(0o644)

    assert find_key_file_open_to_others({}, tmp_path) == private
    assert find_key_file_open_to_others(environment, tmp_path / "other") == private


@pytest.mark.parametrize("text", ["", " \n", "\xff"])
def test_a_file_without_a_key_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_bytes(text.encode("latin-1"))
    (tmp_path / "key").chmod(0o600)

    assert find(tmp_path) is None


def test_the_keyring_is_queried_for_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    queries: list[tuple[str, str]] = []
    keyring = ModuleType("keyring")

    def get_password(service: str, user: str) -> str:
        queries.append((service, user))
        return "kept"

    keyring.get_password = get_password  # type: ignore[attr-defined]  # a module made here
    monkeypatch.setitem(sys.modules, "keyring", keyring)

    assert ask_keyring(URL) == "kept"
    assert queries == [("caret", URL)]


def test_a_failing_keyring_gives_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = ModuleType("keyring")

    def get_password(_service: str, _user: str) -> str:
        raise RuntimeError("locked")

    keyring.get_password = get_password  # type: ignore[attr-defined]  # a module made here
    monkeypatch.setitem(sys.modules, "keyring", keyring)

    assert ask_keyring(URL) is None


def test_without_the_keyring_package_there_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)

    assert ask_keyring(URL) is None


def test_a_stored_key_is_found_and_hidden_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    folder = tmp_path / "caret"
    folder.mkdir()
    key_file(folder, "old", permissions=0o644)

    store_key(folder, gateway_url=URL, key="new")

    assert find(folder) == "new"
    assert (folder / "key").stat().st_mode & 0o777 == 0o600


def test_a_key_is_stored_in_the_keyring_if_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_keys: list[tuple[str, str, str]] = []
    keyring = ModuleType("keyring")
    keyring.set_password = lambda *arguments: stored_keys.append(arguments)  # type: ignore[attr-defined]  # made here
    monkeypatch.setitem(sys.modules, "keyring", keyring)

    store_key(tmp_path, gateway_url=URL, key="new")

    assert stored_keys == [("caret", URL, "new")]
    assert find(tmp_path) is None  # without the keyring, because no file was written
