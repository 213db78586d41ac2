"""The page of editors, and the downloads of Caret's own clients."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import resolve

from caret.local.paths import REPOSITORY
from console.texts.editor_settings import EDITORS
from tenants.base.permissions import Permission, Role, role_has_permission
from tests.fixtures.companies import Cast
from tests.integration.console.conftest import SignIn

VSIX = "caret-0.1.0.vsix"
FILES = {  # content types by file name
    VSIX: "application/octet-stream",
    "caret.nvim.tar.gz": "application/gzip",
    "caret-ls-0.1.0.pyz": "application/octet-stream",
    "caret-jetbrains.zip": "application/zip",
    "caret.el": "text/plain; charset=utf-8",
    "caret-helix.toml": "application/toml",
    "caret.sublime-settings": "text/plain; charset=utf-8",
    "caret-zed.json": "application/json",
}


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    """Return the folder of the downloads, which is empty."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    settings.DOWNLOADS = folder
    return folder


def test_the_page_says_how_to_build_clients_that_are_missing(
    folder: Path, cast: Cast, sign_in: SignIn
) -> None:
    client = sign_in(cast.acme.developer)

    (folder / VSIX).write_bytes(b"PK")
    partly_built = client.get("/editors").content.decode()
    for name in FILES:
        (folder / name).write_bytes(b"x")
    fully_built = client.get("/editors").content.decode()

    assert f'href="/downloads/{VSIX}"' in partly_built
    assert "platform/scripts/build_clients" in partly_built
    assert partly_built.count(">not built<") == len(FILES) - 1
    assert "platform/scripts/build_clients" not in fully_built


def test_each_linked_file_is_downloaded_with_its_type(
    folder: Path, cast: Cast, sign_in: SignIn
) -> None:
    client = sign_in(cast.acme.developer)
    for name in FILES:
        (folder / name).write_bytes(name.encode())

    links = re.findall(r'href="/downloads/([^"]+)"', client.get("/editors").content.decode())
    responses = {name: client.get(f"/downloads/{name}") for name in links}

    assert {name: response["Content-Type"] for name, response in responses.items()} == FILES
    for name, response in responses.items():
        assert (response.status_code, response.content) == (200, name.encode())
        assert response["Content-Disposition"] == f'attachment; filename="{name}"'


@pytest.mark.parametrize(
    "name",
    [
        "secret.txt",
        "caret-0.2.0.vsix",
        "caret-.vsix",
        f"..%2F{VSIX}",
        "..%2Fsecrets",
        "..%5Csecrets",
        "%2E%2E%2Fsecrets",
        "%2Fetc%2Fpasswd",
        f"{VSIX}%00.txt",
        f"{VSIX}%0A",
        f"%2e%2f{VSIX}",
        "caret-0" + "0" * 6000 + ".vsix",
        "",
    ],
)
def test_files_that_are_not_downloads_are_not_served(
    folder: Path, cast: Cast, sign_in: SignIn, name: str
) -> None:
    for file in (folder / "secret.txt", folder.parent / "secrets", folder.parent / VSIX):
        file.write_text("x")
    (folder / VSIX).write_bytes(b"PK")

    assert sign_in(cast.acme.developer).get(f"/downloads/{name}").status_code == 404


def test_a_folder_with_a_clients_name_is_not_served(
    folder: Path, cast: Cast, sign_in: SignIn
) -> None:
    (folder / VSIX).mkdir()

    assert sign_in(cast.acme.developer).get(f"/downloads/{VSIX}").status_code == 404


def test_without_a_session_no_response_reveals_which_files_exist(folder: Path, cast: Cast) -> None:
    (folder / VSIX).write_bytes(b"PK")

    responses = [Client().get(f"/downloads/{name}") for name in (VSIX, "caret-0.2.0.vsix")]

    assert [response.status_code for response in responses] == [302, 302]
    assert all(response["Location"].startswith("/sign-in") for response in responses)
    assert all(b"PK" not in response.content for response in responses)


def test_a_download_cannot_be_changed_by_a_post(folder: Path, cast: Cast, sign_in: SignIn) -> None:
    (folder / VSIX).write_bytes(b"PK")

    assert sign_in(cast.acme.developer).post(f"/downloads/{VSIX}").status_code == 405
    assert (folder / VSIX).read_bytes() == b"PK"


def test_an_installation_without_the_folder_shows_the_page(
    settings: Any, tmp_path: Path, cast: Cast, sign_in: SignIn
) -> None:
    settings.DOWNLOADS = tmp_path / "missing"

    assert "not built" in sign_in(cast.acme.developer).get("/editors").content.decode()


def test_only_roles_with_completions_see_editors_and_downloads(
    folder: Path, cast: Cast, sign_in: SignIn
) -> None:
    (folder / VSIX).write_bytes(b"PK")

    # The roles that may request completions have the permission for the playground.
    for path in ("/editors", f"/downloads/{VSIX}"):
        for role in Role:
            status = 200 if role_has_permission(role, Permission.USE_PLAYGROUND) else 403
            assert sign_in(cast.acme.people[role]).get(path).status_code == status
        assert Client().get(path)["Location"].startswith("/sign-in")


def test_carets_own_clients_come_first() -> None:
    assert [editor.code for editor in EDITORS[:3]] == ["caret-vscode", "caret-ls", "caret-neovim"]


def test_the_pages_that_the_vscode_extension_opens_exist() -> None:
    source = (REPOSITORY / "platform" / "ide" / "vscode" / "src" / "addresses.ts").read_text()

    pages = re.findall(r'^export const \w+ = "([^"]+)"', source, re.MULTILINE)

    assert [resolve(f"/{page}").url_name for page in pages] == ["own", "my-keys-new"]
