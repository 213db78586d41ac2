"""llama.vscode in code-server, with the settings that the console shows."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import expect

from caret.contracts.usage import CompletionRecord
from caret.local.paths import REPOSITORY
from tests.browser.chromium import chromium
from tests.functional.clients.console_settings import make_settings
from tests.functional.clients.plugin_sources import find_plugin
from tests.functional.editor import code_server
from tests.functional.editor.scripted_workbench import MARKS
from tests.functional.editor.workbench import Workbench
from tests.functional.gateway.gateway_stack import Site
from tests.stack.waiting import wait_until

pytestmark = [*MARKS, pytest.mark.engine]
_PICTURE: Final = REPOSITORY / ".caret" / "pictures" / "llama-vscode" / "suggested.png"
_REPOSITORY: Final = "ggml-org/llama.vscode"
_CODE: Final = "import os\n\n\nclass Reader:\n    def __init__(self, path, mode):\n"
_TYPED: Final = "        self.path = path\nself.m"  # the editor indents after a line break
_REST: Final = "ode = mode"  # the first line that the demonstration model writes here
_COMMANDS: Final = (
    ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"),
    ("npm", "run", "bundle"),
)
_COMMAND_TIMEOUT_S: Final = 300
_TIMEOUT_MS: Final = 60_000.0
_DELIVERY_TIMEOUT_S: Final = 30.0


def package(folder: Path) -> Path:
    """Run the plugin's own script `bundle`, and pack the result as a .vsix, which is a ZIP file.

    This script does not build the pages of the plugin's chat, so the result lacks them.
    """
    extension = folder / "extension"
    ignored = shutil.ignore_patterns(".git", "node_modules")
    shutil.copytree(find_plugin(_REPOSITORY, folder), extension, ignore=ignored)
    for command in _COMMANDS:
        subprocess.run(
            command, cwd=extension, capture_output=True, check=True, timeout=_COMMAND_TIMEOUT_S
        )
    shutil.rmtree(extension / "node_modules")
    archive = shutil.make_archive(str(folder / "plugin"), "zip", folder, extension.name)
    return Path(archive).rename(folder / "plugin.vsix")


@pytest.fixture
def workbench(site: Site, tmp_path: Path) -> Iterator[Workbench]:
    """Open a window, and close the help that the plugin shows when the first file is opened."""
    vsix = package(tmp_path)
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "reader.py").write_text(_CODE)
    installed = code_server.install()
    settings = json.loads(make_settings("llama-vscode", site.url, site.acme_key))
    with (
        code_server.running(installed, vsix, tmp_path, settings=settings) as url,
        chromium() as browser,
    ):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        opened_workbench = Workbench(page, url, folder)
        page.locator(".explorer-folders-view [aria-label='reader.py']").dblclick()
        webview = page.frame_locator("iframe.webview.ready").frame_locator("#active-frame")
        webview.get_by_role("button", name="OK").click(timeout=_TIMEOUT_MS)
        expect(page.locator(".tab").filter(has_text="Information")).to_have_count(0)
        yield opened_workbench


def editors(site: Site) -> set[str]:
    """Return the editors in the usage records of llama.cpp's protocol."""
    completions = [record for record in site.records() if isinstance(record, CompletionRecord)]
    return {record.editor for record in completions if record.protocol == "infill"}


def test_llama_vscode_shows_and_accepts_a_suggestion(site: Site, workbench: Workbench) -> None:
    file = workbench.open_file("reader.py")
    workbench.type_text(_TYPED)
    wait_until(lambda: _REST in workbench.wait_for_suggestion(), timeout_s=_TIMEOUT_MS / 1_000)
    workbench.take_screenshot(_PICTURE)
    workbench.press_keys("Tab")
    workbench.save_and_expect(file, f"        self.m{_REST}")

    wait_until(lambda: bool(editors(site)), timeout_s=_DELIVERY_TIMEOUT_S)
    assert editors(site) == {"vscode"}
