"""Neovim plugins get completions from the gateway.

The plugins come from their public repositories. If the console shows settings for a plugin, the
test uses these settings.
"""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from caret.contracts.usage import CompletionRecord
from tests.functional.clients.console_settings import fill_template, find_template
from tests.functional.clients.plugin_sources import find_plugin
from tests.functional.editor.neovim import NEOVIM, TIMEOUT_S, Neovim
from tests.functional.gateway.gateway_stack import Site, wait_until
from tests.stack.language_server import environment_of
from tests.stack.waiting import wait_until as wait_for_condition

pytestmark = [
    pytest.mark.engine,
    pytest.mark.deep,
    pytest.mark.skipif(shutil.which("curl") is None, reason="the plugins call curl"),
]
CODE = "import os\n\n\ndef read(path):\n    with open(\n        return file.read()\n"
# An expression for the suggestion on the screen: the first parts of all virtual texts, joined.
# llama.vim shows its timings in the second part.
VISIBLE = "luaeval('table.concat(vim.tbl_map(function(m) return ((m[4].virt_text or {})[1] or {})[1] or \"\" end, vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, {details = true})))')"  # noqa: E501  # one expression
CODECOMPANION = """\
require("codecompanion").setup({
  adapters = { http = { caret = function()
    return require("codecompanion.adapters").extend("openai_compatible", {
      env = { url = "URL", api_key = "KEY" },
      headers = { ["X-Caret-Editor"] = "neovim" },
      schema = { model = { default = "caret" } },
    })
  end } },
  interactions = { chat = { adapter = "caret" } },
})
"""


@contextmanager
def running_plugin(home: Path, init: str, site: Site, *repositories: str) -> Iterator[Neovim]:
    """Run Neovim with plugins and their settings; `init` is Lua, unless it begins with `let`."""
    init = fill_template(init, site.url, site.acme_key)
    folders = [find_plugin(repository, home) for repository in repositories]
    is_lua = not init.startswith("let")
    set_path = "vim.opt.rtp:prepend('{}')\n" if is_lua else "set rtp^={}\n"
    config = home / ("init.lua" if is_lua else "init.vim")
    config.write_text("".join(map(set_path.format, folders)) + init)
    file = home / "main.py"
    file.write_text(CODE)
    neovim = Neovim(home / "nvim.sock", environment_of(home, TERM="dumb", TMPDIR=str(home)))
    command: list[str | Path] = [
        NEOVIM,
        "--headless",
        "--listen",
        neovim.socket,
        "-u",
        config,
        file,
    ]
    with subprocess.Popen(
        command, env=neovim.environment, cwd=home, stdout=subprocess.DEVNULL
    ) as process:
        try:
            wait_for_condition(neovim.is_listening, timeout_s=TIMEOUT_S)
            yield neovim
        finally:
            process.kill()


async def wait_for_value(neovim: Neovim, expression: str) -> str:
    """Wait until the expression has a value, and return it without white space around it."""
    values = [""]

    async def has_value() -> bool:
        values[0] = (await asyncio.to_thread(neovim.evaluate, expression)).strip()
        return bool(values[0])

    assert await wait_until(has_value), "Neovim showed nothing"
    return values[0]


async def accept_suggestion(neovim: Neovim, accept: str) -> str:
    """Type a quote at the end of line 5, accept the suggestion with the keys `accept`, and return
    the line without its indentation."""
    await wait_for_value(neovim, "line('$') >= 6 ? 'loaded' : ''")
    neovim.press("5GA'")
    await wait_for_value(neovim, VISIBLE)
    neovim.press(accept)
    # With the typed quote, the line has 15 characters. The suggestion makes it longer.
    return await wait_for_value(neovim, "len(getline(5)) > 15 ? getline(5) : ''")


async def completions_after(site: Site, num_records: int) -> list[CompletionRecord]:
    """Return the completions that were recorded after the first `num_records` usage records."""
    await site.num_records()  # waits until all records are delivered
    records = site.records()[num_records:]
    return [record for record in records if isinstance(record, CompletionRecord)]


async def test_minuet_shows_and_accepts_a_suggestion(site: Site, tmp_path: Path) -> None:
    num_records = await site.num_records()

    with running_plugin(
        tmp_path,
        find_template("neovim"),
        site,
        "nvim-lua/plenary.nvim",
        "milanglacier/minuet-ai.nvim",
    ) as neovim:
        line = await accept_suggestion(neovim, "<A-A>")

    assert line.startswith("with open('")
    completions = await completions_after(site, num_records)
    assert {(record.protocol, record.editor, record.language) for record in completions} == {
        ("openai", "neovim", "python")
    }


async def test_minuets_three_requests_are_generated_once(site: Site, tmp_path: Path) -> None:
    num_records = await site.num_records()
    counting = (
        "vim.api.nvim_create_autocmd('User', { pattern = 'MinuetRequestStarted', "
        "callback = function() vim.g.started = (vim.g.started or 0) + 1 end })\n"
    )
    init = counting + find_template("neovim").replace("n_completions = 1", "n_completions = 3")

    with running_plugin(
        tmp_path, init, site, "nvim-lua/plenary.nvim", "milanglacier/minuet-ai.nvim"
    ) as neovim:
        await accept_suggestion(neovim, "<A-A>")
        started = int(await wait_for_value(neovim, "g:started"))

    completions = await completions_after(site, num_records)
    assert started >= 3
    # The plugin sends each request three times. Only the first of three identical requests runs and
    # leaves a usage record; the two others get its completion. If the plugin closes the connection
    # of the first, it is recorded as cancelled, and another of the three runs.
    ended = [record for record in completions if record.finish_reason != "cancelled"]
    assert 1 <= len(ended) <= started / 3


async def test_llama_vim_shows_and_accepts_a_suggestion(site: Site, tmp_path: Path) -> None:
    num_records = await site.num_records()

    with running_plugin(tmp_path, find_template("llama-vim"), site, "ggml-org/llama.vim") as neovim:
        line = await accept_suggestion(neovim, "<Tab>")

    assert line.startswith("with open('")
    completions = await completions_after(site, num_records)
    assert {(record.protocol, record.editor) for record in completions} == {("infill", "vim")}


async def test_codecompanion_chats(site: Site, tmp_path: Path) -> None:
    num_records = await site.num_records()

    with running_plugin(
        tmp_path, CODECOMPANION, site, "nvim-lua/plenary.nvim", "olimorris/codecompanion.nvim"
    ) as neovim:
        await wait_for_value(neovim, "exists(':CodeCompanionChat') ? 'loaded' : ''")
        neovim.press(":CodeCompanionChat import os and read a file<CR>")
        answer = await wait_for_value(
            neovim, "join(getline(search('^## CodeCompanion') + 2, '$'), '') =~ '\\w' ? 'text' : ''"
        )

    assert answer == "text"
    completions = await completions_after(site, num_records)
    assert [(record.mode, record.editor) for record in completions] == [("chat", "neovim")]
