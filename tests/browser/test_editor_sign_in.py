"""Sign-in from a real Neovim: the command, the page in the browser, and the stored key."""

import stat
from pathlib import Path
from typing import Final

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from caret.contracts.api_key import parse_key
from tenants.base.permissions import Role
from tenants.identity.api_keys.queries import is_key_active
from tests.browser.sample_data import Scene
from tests.browser.tabs import Tabs
from tests.functional.editor.neovim import running_neovim
from tests.stack.waiting import wait_until

pytestmark = pytest.mark.deep

_NO_GATEWAY: Final = "http://127.0.0.1:9"  # nothing listens there
_TIMEOUT_S: Final = 60.0
# Neovim stores the URL in a variable instead of opening it in a browser.
_RECORD_URL: Final = "execute('lua vim.ui.open = function(url) vim.g.opened = url end')"


def test_neovim_signs_in_through_the_browser(
    tmp_path: Path, scene: Scene, tabs: Tabs, console_url: str
) -> None:
    file = tmp_path / "app.py"
    file.write_text("import os\n")
    # `running_neovim` sets the variable XDG_CONFIG_HOME to the folder of the same name.
    key_file = tmp_path / "XDG_CONFIG_HOME" / "caret" / "key"
    with running_neovim(
        tmp_path, file, key="", gateway_url=_NO_GATEWAY, console_url=console_url
    ) as neovim:
        neovim.evaluate(_RECORD_URL)
        count_clients = "luaeval('#vim.lsp.get_clients({ name = \"caret\" })')"
        wait_until(lambda: neovim.evaluate(count_clients) == "1", timeout_s=_TIMEOUT_S)
        neovim.press(":Caret sign_in<CR>")
        wait_until(lambda: neovim.evaluate("get(g:, 'opened', '')") != "", timeout_s=_TIMEOUT_S)
        code = neovim.evaluate("get(g:, 'opened', '')").rpartition("=")[2]

        page = tabs.open(scene.session_of_role(Role.DEVELOPER))
        page.goto(f"/device?code={code}")
        expect(page.locator("main")).to_contain_text("Neovim")
        page.click("button[value=confirm]")
        expect(page.locator("h1")).to_have_text("Your editor is signed in")
        wait_until(key_file.exists, timeout_s=_TIMEOUT_S)
        page.goto("/account/keys")
        expect(page.locator("#keys")).to_contain_text("Neovim")

    key = parse_key(key_file.read_text().strip())
    assert key is not None
    assert is_key_active(tenant_id=scene.company.tenant_id, key=key, now=timezone.now())
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
