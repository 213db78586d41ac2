"""Requests contain definitions that Neovim's other language servers find.

The gateway is a fake.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.polling import wait_until
from tests.functional.editor.neovim import TIMEOUT_S, Neovim, running_neovim
from tests.functional.editor.test_neovim_chat import becomes
from tests.unit.caret_ls.fake_gateway import Gateway, gateway

pytestmark = pytest.mark.deep  # drives Neovim

_KEY: Final = "cpk_test_" + "0" * 28
_PRICES: Final = "RATE = 1\ndef price_of(order, rate):\n    return order\n"
# A language server in Neovim's own process. It counts columns in bytes, and knows only the symbol
# that begins in the column %d. Its definition is in the second line of the file with the URI %s.
_SERVER: Final = """
vim.lsp.start({
  name = 'python',
  cmd = function()
    return {
      request = function(method, params, callback)
        if method == 'initialize' then
          local capabilities = { definitionProvider = true, positionEncoding = 'utf-8' }
          callback(nil, { capabilities = capabilities })
        elseif method == 'textDocument/definition' then
          local is_known = params.position.character == %d
          callback(nil, is_known and {
            { targetUri = '%s', targetRange = { start = { line = 0, character = 0 } },
              targetSelectionRange = { start = { line = 1, character = 4 } } },
          } or nil)
        end
        return true, 1
      end,
      notify = function() return true end,
      is_closing = function() return false end,
      terminate = function() end,
    }
  end,
}, { bufnr = 0 })
"""


@pytest.fixture
async def fake() -> AsyncIterator[Gateway]:
    async with gateway() as fake_gateway:
        fake_gateway.suggestion = ""
        fake_gateway.modes = ["inline"]
        yield fake_gateway


@pytest.fixture
async def neovim(fake: Gateway, tmp_path: Path) -> AsyncIterator[Neovim]:
    (tmp_path / ".git").mkdir()  # definitions need a repository
    (tmp_path / "prices.py").write_text(_PRICES)
    file = tmp_path / "a.py"
    file.write_text("")
    with running_neovim(tmp_path, file, key=_KEY, gateway_url=fake.url) as editor:
        await becomes(editor, "luaeval(\"#vim.lsp.get_clients({ name = 'caret' })\")", "1")
        yield editor


async def test_definitions_of_another_language_server_are_sent(
    fake: Gateway, neovim: Neovim, tmp_path: Path
) -> None:
    script = tmp_path / "server.lua"
    line = "'ü', price_of("
    column = len("'ü', ".encode())  # the bytes before the symbol
    script.write_text(_SERVER % (column, (tmp_path / "prices.py").as_uri()))
    neovim.press(f":luafile {script}<CR>")
    await becomes(neovim, "luaeval(\"#vim.lsp.get_clients({ name = 'python' })\")", "1")

    neovim.press(f"i{line}")
    await becomes(neovim, "getline('.')", line)

    def press_key_and_find_definition() -> bool:
        neovim.press("a")  # each key causes a request; a later one has the definition
        return any("definitions" in frame for frame in list(fake.received))

    await wait_until(press_key_and_find_definition, timeout_s=TIMEOUT_S)
    (first, *_) = (frame for frame in fake.received if "definitions" in frame)
    assert first["definitions"] == [{"path": "prices.py", "text": "def price_of(order, rate):\n"}]


async def test_suggestions_continue_without_another_language_server(
    fake: Gateway, neovim: Neovim
) -> None:
    fake.suggestion = "order)"
    neovim.press("iprice_of(")

    assert await neovim.wait_for_any_suggestion() == "order)"
    assert not any("definitions" in frame for frame in fake.received)
