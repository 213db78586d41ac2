"""The clients that `platform/scripts/build_clients` builds, used as a user installs them."""

import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from caret.local.paths import REPOSITORY
from tests.fakes.polling import wait_until
from tests.functional.editor.code_server import BUILD_LOCK
from tests.functional.editor.neovim import TIMEOUT_S, start_neovim
from tests.stack.file_lock import file_lock
from tests.stack.language_server import environment_of, language_server
from tests.unit.caret_ls.fake_gateway import gateway

_BUILD: Final = REPOSITORY / "platform" / "scripts" / "build_clients"
_GATEWAY: Final = "https://gateway.acme.example"
_CONSOLE: Final = "https://console.acme.example"
_KEY: Final = "cpk_test_" + "0" * 28  # has the format of an API key
# Only Python itself: no packages, no environment, no folder of the user.
_BARE_PYTHON: Final = (sys.executable, "-I", "-S")


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(tmp_path_factory.mktemp("downloads"), "--without-vscode")


@pytest.fixture
def server(downloads: Path) -> Path:
    (file,) = downloads.glob("caret-ls-*.pyz")
    return file


def _build(folder: Path, *options: str) -> Path:
    environment = environment_of(folder, CARET_GATEWAY_URL=_GATEWAY, CARET_CONSOLE_URL=_CONSOLE)
    command = [sys.executable, str(_BUILD), str(folder / "files"), *options]
    with file_lock(BUILD_LOCK):
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
    assert process.returncode == 0, process.stderr
    return folder / "files"


def _run_bare(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*_BARE_PYTHON, *words], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.deep  # builds the clients a second time
def test_the_same_sources_give_the_same_bytes(downloads: Path, tmp_path: Path) -> None:
    second_build = _build(tmp_path, "--without-vscode")

    assert {file.name: file.read_bytes() for file in second_build.iterdir()} == {
        file.name: file.read_bytes() for file in downloads.iterdir()
    }


def test_python_alone_runs_the_language_server(server: Path) -> None:
    assert _run_bare(str(server), "--version").stdout == "caret-ls 0.1.0\n"
    assert server.read_bytes().startswith(b"#!/usr/bin/env python3\n")


def test_an_outdated_python_prints_the_required_version(server: Path) -> None:
    code = "import runpy, sys; sys.version_info = (3, 9, 6); runpy.run_path(sys.argv[1])"

    process = _run_bare("-c", code, str(server))

    assert process.returncode == 1
    assert process.stderr.startswith("caret-ls needs Python 3.11 or newer; ")
    assert "Python 3.9.6" in process.stderr
    assert "Traceback" not in process.stderr


async def test_the_language_server_connects_to_the_gateway(server: Path, tmp_path: Path) -> None:
    async with gateway() as fake:
        environment = environment_of(tmp_path, CARET_API_KEY=_KEY, CARET_GATEWAY_URL=fake.url)
        command = (*_BARE_PYTHON, str(server))
        async with language_server(environment, folder=tmp_path, command=command) as started:
            await started.wait_for_status("ready")


def test_the_language_server_knows_the_addresses_of_its_installation(server: Path) -> None:
    # Without settings in the environment, in a file or from an editor.
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path;"
        "from caret_ls.settings import read_settings;"
        " settings, _ = read_settings({}, Path('/missing'), None);"
        "print(settings.gateway_url, settings.console_url)"
    )

    assert _run_bare("-c", code, str(server)).stdout.split() == [_GATEWAY, _CONSOLE]


def test_the_archive_for_neovim_has_one_folder_and_no_links(downloads: Path) -> None:
    with tarfile.open(downloads / "caret.nvim.tar.gz") as archive:
        members = archive.getmembers()

    names = {member.name for member in members}
    assert all(member.isfile() and member.mode == 0o644 for member in members)
    assert all(name.startswith("caret.nvim/") and ".." not in name for name in names)
    assert {
        "caret.nvim/plugin/caret.lua",
        "caret.nvim/lua/caret/init.lua",
        "caret.nvim/lua/caret/health.lua",
        "caret.nvim/doc/caret.txt",
        "caret.nvim/doc/tags",
        "caret.nvim/server/caret-ls.pyz",
    } <= names


@pytest.mark.deep  # drives Neovim
async def test_neovim_suggests_after_the_archive_is_unpacked(
    downloads: Path, tmp_path: Path
) -> None:
    packages = tmp_path / ".local" / "share" / "nvim" / "site" / "pack" / "caret" / "start"
    with tarfile.open(downloads / "caret.nvim.tar.gz") as archive:
        archive.extractall(packages, filter="data")
    file = tmp_path / "a.py"
    file.write_text("import os\n")
    async with gateway() as fake:
        fake.suggestion = "(self)"
        environment = environment_of(
            tmp_path, CARET_API_KEY=_KEY, CARET_GATEWAY_URL=fake.url, TERM="dumb"
        )
        with start_neovim(tmp_path, file, environment) as neovim:
            await wait_until(lambda: bool(fake.sockets), timeout_s=TIMEOUT_S)
            neovim.press("Godef f")  # Go: begin a new last line
            assert await neovim.wait_for_any_suggestion()
            neovim.press("<Esc>:help caret-options<CR>")
            help_line = neovim.line

    assert "OPTIONS" in help_line


def test_the_files_for_other_editors_are_valid_and_name_caret(downloads: Path) -> None:
    helix = tomllib.loads((downloads / "caret-helix.toml").read_text())
    zed = json.loads((downloads / "caret-zed.json").read_text())
    with zipfile.ZipFile(downloads / "caret-jetbrains.zip") as archive:
        template = json.loads(archive.read("caret-jetbrains/template.json"))

    provider = zed["edit_predictions"]["open_ai_compatible_api"]
    assert provider["api_url"] == f"{_GATEWAY}/v1/completions"
    assert helix["language-server"]["caret"]["command"] == "caret-ls"
    languages = helix["language"]
    assert languages
    assert all("caret" in language["language-servers"] for language in languages)
    assert template["programArgs"]["default"].endswith('.local/bin/caret-ls"')
    assert {"python", "typescriptreact"} <= {
        mapping["languageId"] for mapping in template["fileTypeMappings"]
    }


@pytest.fixture(scope="module")
def vsix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = _build(tmp_path_factory.mktemp("vscode"))
    (file,) = folder.glob("*.vsix")
    with zipfile.ZipFile(file) as archive:
        yield archive


@pytest.mark.deep
def test_the_extension_contains_the_server_and_no_unneeded_file(
    vsix: zipfile.ZipFile, downloads: Path
) -> None:
    names = set(vsix.namelist())
    (server,) = downloads.glob("caret-ls-*.pyz")

    assert names == {
        "[Content_Types].xml",
        "extension.vsixmanifest",
        "extension/LICENSE.txt",
        "extension/changelog.md",
        "extension/readme.md",
        "extension/icon.png",
        "extension/package.json",
        "extension/package.nls.json",
        "extension/package.nls.de.json",
        "extension/l10n/bundle.l10n.de.json",
        "extension/dist/chat.js",
        "extension/dist/extension.js",
        "extension/dist/NOTICES.txt",
        "extension/media/chat.css",
        "extension/media/chat.svg",
        "extension/server/caret-ls.pyz",
    }
    assert vsix.read("extension/server/caret-ls.pyz") == server.read_bytes()


@pytest.mark.deep
def test_the_extension_has_marketplace_metadata_and_its_installations_urls(
    vsix: zipfile.ZipFile,
) -> None:
    manifest = json.loads(vsix.read("extension/package.json"))
    settings = manifest["contributes"]["configuration"]["properties"]

    for field in ("publisher", "repository", "homepage", "bugs", "license", "icon", "categories"):
        assert manifest[field]
    assert settings["caret.gatewayUrl"]["default"] == _GATEWAY
    assert settings["caret.consoleUrl"]["default"] == _CONSOLE
    # Links to other documents would be dead, because the extension does not contain the documents.
    assert "](../" not in vsix.read("extension/readme.md").decode()
