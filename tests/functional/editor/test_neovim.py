"""Neovim 0.11 with the shim: a suggestion shown on its screen, accepted with Tab, counted."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from caret.contracts.usage import OutcomeRecord
from caret.local.paths import REPOSITORY
from tests.functional.editor.developer import Developer, make_developer
from tests.functional.gateway.gateway_stack import Site, until
from tests.stack.language_server import environment_of

pytestmark = pytest.mark.engine

_SHIM: Final = REPOSITORY / "platform" / "ide" / "neovim" / "caret.lua"
_NEOVIM: Final = Path(sys.executable).with_name("nvim")
_TEXT: Final = "import os\n\n\nclass Reader:\n    def __init__(self, path, mode):\n"
_PATIENCE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Neovim:
    socket: Path
    environment: dict[str, str]

    def evaluate(self, expression: str) -> str:
        return self._remote("--remote-expr", expression)

    def press(self, keys: str) -> None:
        self._remote("--remote-send", keys)

    @property
    def suggestion(self) -> str:
        return self.evaluate("""luaeval("require('caret').shown() or ''")""")

    @property
    def line(self) -> str:
        return self.evaluate("getline('.')")

    async def suggests(self) -> str:
        async def does() -> bool:
            return await asyncio.to_thread(lambda: self.suggestion) != ""

        assert await until(does, patience_s=_PATIENCE_S), "no suggestion appeared"
        return self.suggestion

    def _remote(self, *words: str) -> str:
        command = [str(_NEOVIM), "--server", str(self.socket), *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True, timeout=30
        ).stdout


@pytest.fixture
def ada(site: Site, tmp_path: Path) -> Developer:
    return make_developer(site, tmp_path)


@pytest.fixture
def neovim(ada: Developer) -> Iterator[Neovim]:
    """Run Neovim with `reader.py` open, the cursor at its end, in insert mode."""
    config = ada.home / "XDG_CONFIG_HOME" / "nvim"
    (config / "lua").mkdir(parents=True)
    shutil.copy(_SHIM, config / "lua")
    cmd = f"{{ '{sys.executable}', '-m', 'caret_ls' }}"
    setup = f"require('caret').setup({{ cmd = {cmd}, filetypes = {{ 'python' }} }})\n"
    (config / "init.lua").write_text(f"vim.cmd('filetype indent off')\n{setup}")
    environment = environment_of(
        ada.home, CARET_API_KEY=ada.key, CARET_GATEWAY_URL=ada.site.url, TERM="dumb"
    )
    made = Neovim(ada.home / "nvim.sock", environment)
    command = [str(_NEOVIM), "--headless", "--listen", str(made.socket)]
    file = ada.file("reader.py", _TEXT)
    with subprocess.Popen([*command, os.fspath(file)], env=environment, cwd=ada.home) as process:
        try:
            yield made
        finally:
            process.kill()


async def test_tab_accepts_a_visible_suggestion(ada: Developer, neovim: Neovim) -> None:
    async def is_ready() -> bool:
        return neovim.socket.exists() and "connected" in _log_of(ada)

    assert await until(is_ready, patience_s=_PATIENCE_S), "Neovim did not start"
    neovim.press("Go        self.path = path<CR>        self.m")
    suggestion = await neovim.suggests()
    before = neovim.line
    neovim.press("<Tab>")
    shown, accepted = (await ada.wait_for_records(OutcomeRecord, 2))[-2:]

    first_line = suggestion.partition("\n")[0]
    assert (before + first_line) in neovim.evaluate("join(getline(1, '$'), nr2char(10))")
    assert neovim.suggestion != suggestion
    assert (shown.event, accepted.event) == ("shown", "accepted")
    assert accepted.chars == len(suggestion)


def _log_of(ada: Developer) -> str:
    try:
        return ada.log
    except OSError:
        return ""
