"""The page of editors, and the downloads of Caret's own clients."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from console.texts.editor_settings import EDITORS
from tenants.base.permissions import Role
from tests.fixtures.companies import Cast
from tests.integration.console.conftest import SignIn

VSIX = "caret-0.1.0.vsix"


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.DOWNLOADS = tmp_path / "downloads"
    settings.DOWNLOADS.mkdir()
    return Path(settings.DOWNLOADS)


def test_the_page_says_how_to_build_clients_that_are_missing(
    folder: Path, cast: Cast, sign_in: SignIn
) -> None:
    client = sign_in(cast.acme.developer)

    (folder / VSIX).write_bytes(b"PK")
    some = client.get("/editors").content.decode()
    for name in ("caret_ls-0.1.0-py3-none-any.whl", "caret.nvim.tar.gz"):
        (folder / name).write_bytes(b"x")
    every = client.get("/editors").content.decode()

    assert f'href="/downloads/{VSIX}"' in some
    assert "platform/scripts/build_clients" in some
    assert some.count(">not built<") == 2
    assert "platform/scripts/build_clients" not in every


def test_a_client_is_downloaded(folder: Path, cast: Cast, sign_in: SignIn) -> None:
    (folder / VSIX).write_bytes(b"PK content")

    answer = sign_in(cast.acme.developer).get(f"/downloads/{VSIX}")

    assert answer.content == b"PK content"
    assert answer["Content-Disposition"] == f'attachment; filename="{VSIX}"'


@pytest.mark.parametrize("name", ["secret.txt", "..%2Fsecrets", "caret-0.2.0.vsix", "caret-.vsix"])
def test_other_files_are_not_served(folder: Path, cast: Cast, sign_in: SignIn, name: str) -> None:
    (folder / "secret.txt").write_text("x")
    (folder.parent / "secrets").write_text("x")

    assert sign_in(cast.acme.developer).get(f"/downloads/{name}").status_code == 404


def test_an_installation_without_the_folder_shows_the_page(
    settings: Any, tmp_path: Path, cast: Cast, sign_in: SignIn
) -> None:
    settings.DOWNLOADS = tmp_path / "missing"

    assert "not built" in sign_in(cast.acme.developer).get("/editors").content.decode()


def test_only_roles_that_complete_see_it(folder: Path, cast: Cast, sign_in: SignIn) -> None:
    (folder / VSIX).write_bytes(b"PK")

    for path in ("/editors", f"/downloads/{VSIX}"):
        assert sign_in(cast.acme.people[Role.BILLING]).get(path).status_code == 403
        assert Client().get(path)["Location"].startswith("/sign-in")


def test_carets_own_clients_come_first() -> None:
    assert [editor.code for editor in EDITORS[:3]] == ["caret-vscode", "caret-ls", "caret-neovim"]
