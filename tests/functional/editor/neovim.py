"""Neovim 0.11 with the plugin. Tests control it over its socket."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caret.local.paths import REPOSITORY
from tests.functional.gateway.gateway_stack import wait_until
from tests.stack.language_server import environment_of
from tests.stack.waiting import wait_until as wait_for_condition

_PLUGIN: Final = REPOSITORY / "platform" / "ide" / "neovim"
NEOVIM: Final = Path(sys.executable).with_name("nvim")
TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Neovim:
    socket: Path
    environment: dict[str, str]

    def is_listening(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(os.fspath(self.socket)) == 0

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

    @property
    def text(self) -> str:
        return self.evaluate("join(getline(1, '$'), nr2char(10))").rstrip("\n")

    async def wait_for_message(self, text: str) -> bool:
        """Wait until a message contains this text; return False after `TIMEOUT_S`."""

        async def is_there() -> bool:
            messages = await asyncio.to_thread(self.evaluate, "execute('messages')")
            return text in messages.replace("\n", "")  # a long message has line breaks

        return await wait_until(is_there, timeout_s=TIMEOUT_S)

    async def wait_for_any_suggestion(self) -> str:
        """Wait until there is a suggestion, and return it."""

        async def is_there() -> bool:
            return await asyncio.to_thread(lambda: self.suggestion) != ""

        assert await wait_until(is_there, timeout_s=TIMEOUT_S), "no suggestion appeared"
        return self.suggestion

    async def wait_for_suggestion(self, text: str) -> bool:
        """Wait until the suggestion is this text; return False after `TIMEOUT_S`."""

        async def is_there() -> bool:
            return await asyncio.to_thread(lambda: self.suggestion) == text

        return await wait_until(is_there, timeout_s=TIMEOUT_S)

    def _remote(self, *words: str) -> str:
        command = [str(NEOVIM), "--server", str(self.socket), *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True, timeout=120
        ).stdout


@contextmanager
def running_neovim(
    home: Path,
    file: Path,
    *,
    key: str,
    gateway_url: str,
    console_url: str = "",
    cmd: Sequence[str] = (sys.executable, "-m", "caret_ls"),
) -> Iterator[Neovim]:
    """Run Neovim with a file open. `cmd` is the command of the language server."""
    # `environment_of` sets the variable XDG_CONFIG_HOME to the folder of the same name.
    config = home / "XDG_CONFIG_HOME" / "nvim"
    config.mkdir(parents=True)
    words = ", ".join(f"'{word}'" for word in cmd)
    setup = f"require('caret').setup({{ cmd = {{ {words} }}, filetypes = {{ 'python' }} }})\n"
    path = f"vim.opt.runtimepath:prepend('{_PLUGIN}')\n"
    # Without indentation, so that lines are exactly as tests type them.
    (config / "init.lua").write_text(f"vim.cmd('filetype indent off')\n{path}{setup}")
    environment = environment_of(
        home,
        CARET_API_KEY=key,
        CARET_GATEWAY_URL=gateway_url,
        CARET_CONSOLE_URL=console_url,
        TERM="dumb",
    )
    with start_neovim(home, file, environment) as editor:
        yield editor


@contextmanager
def start_neovim(home: Path, file: Path, environment: dict[str, str]) -> Iterator[Neovim]:
    neovim = Neovim(home / "nvim.sock", environment)
    command = [str(NEOVIM), "--headless", "--listen", str(neovim.socket)]
    with subprocess.Popen([*command, os.fspath(file)], env=environment, cwd=home) as process:
        try:
            wait_for_condition(neovim.is_listening, timeout_s=TIMEOUT_S)
            yield neovim
        finally:
            process.kill()
