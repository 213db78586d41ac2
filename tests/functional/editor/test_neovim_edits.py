"""The next edit on the screen of Neovim.

The gateway is a fake that the tests control; the rest is real.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fakes.polling import wait_until
from tests.functional.editor.neovim import TIMEOUT_S, Neovim, running_neovim
from tests.functional.editor.test_neovim_chat import becomes, eventually, lua
from tests.unit.caret_ls.fake_gateway import Gateway, gateway

pytestmark = pytest.mark.deep  # drives Neovim

_KEY: Final = "cpk_test_" + "0" * 28
_TEXT: Final = "def total(items):\n    return sum(items)\n\n\nprint(total([1]), 'ü')\n"
_EDIT: Final = {"start_line": 4, "end_line": 5, "text": "print(total_of([1]), 'ü')\n"}
_EDITED: Final = _TEXT.replace("total", "total_of").rstrip()
_DIAGNOSTIC: Final = (
    "lua vim.diagnostic.set(vim.api.nvim_create_namespace('linter'), 0,"
    " {{ lnum = 4, col = 6, message = 'not defined', severity = 1 }})"
)
_MARKS: Final = (
    "json_encode(nvim_buf_get_extmarks(0, nvim_create_namespace('caret_edit'), 0, -1,"
    " {'details': v:true}))"
)

# Requests an edit before the first change, and returns the reason for having none. It is another
# reason than `nothing_to_suggest` until the policy has arrived, because edits are off until then.
_REASON: Final = (
    "require('caret.server').client(0):request_sync('$/caret/nextEdit',"
    " { uri = vim.uri_from_bufnr(0), position = { line = 0, character = 0 } }, 5000).result.reason"
)


@pytest.fixture
async def fake() -> AsyncIterator[Gateway]:
    async with gateway() as fake_gateway:
        fake_gateway.suggestion = ""
        fake_gateway.modes = ["inline", "edit"]
        fake_gateway.edit = _EDIT
        yield fake_gateway


@pytest.fixture
async def neovim(fake: Gateway, tmp_path: Path) -> AsyncIterator[Neovim]:
    """Run Neovim in insert mode, after a function was renamed. Its call is the next edit."""
    file = tmp_path / "a.py"
    file.write_text(_TEXT)
    with running_neovim(tmp_path, file, key=_KEY, gateway_url=fake.url) as editor:
        await becomes(editor, "luaeval(\"#vim.lsp.get_clients({ name = 'caret' })\")", "1")
        await eventually(lambda: lua(editor, _REASON) == "nothing_to_suggest")
        editor.press(f":{_DIAGNOSTIC}<CR>gg0f(i_of")  # gg0f(i: insert before the first "("
        await eventually(lambda: is_shown(editor))
        yield editor


def is_shown(neovim: Neovim) -> bool:
    return lua(neovim, "require('caret.edit').shown() and 1 or 0") == "1"


def marks(neovim: Neovim) -> list[tuple[int, int, dict[str, Any]]]:
    """Return the row, the column and the details of all that the plugin draws for the edit."""
    return [
        (row, column, details) for _, row, column, details in json.loads(neovim.evaluate(_MARKS))
    ]


def hint(neovim: Neovim) -> tuple[int, str]:
    """Return the row and the text of the hint."""
    ((row, _, details),) = (
        (row, column, details)
        for row, column, details in marks(neovim)
        if details.get("virt_text_pos") == "eol"
    )
    # The only chunk of the text. A chunk is a pair of a text and a highlight group.
    ((text, _group),) = details["virt_text"]
    return row, text.strip()


async def test_diagnostics_are_sent_and_the_edit_is_drawn_with_a_hint(
    fake: Gateway, neovim: Neovim
) -> None:
    (added,) = (
        (row, column, details["virt_text"])
        for row, column, details in marks(neovim)
        if details.get("virt_text_pos") == "inline"
    )

    assert added == (4, len("print(total"), [["_of", "CaretEditAdded"]])
    assert hint(neovim) == (0, "Tab: go to the edit in line 5 ↓")
    assert fake.requests("edit")[-1]["diagnostics"] == [
        {"line": 4, "severity": "error", "message": "not defined"}
    ]


async def test_tab_goes_to_the_edit_and_a_second_one_applies_it(
    fake: Gateway, neovim: Neovim
) -> None:
    fake.edit = None
    neovim.press("<Tab>")
    await becomes(neovim, "line('.')", "5")
    assert hint(neovim) == (4, "Tab: apply the edit")
    neovim.press("<Tab>")
    await eventually(lambda: neovim.text == _EDITED)
    await wait_until(lambda: bool(fake.outcomes("accepted")), timeout_s=TIMEOUT_S)

    assert neovim.evaluate("col('.')").rstrip("\n") == str(len("print(total_of") + 1)
    assert not is_shown(neovim)
    assert len(fake.outcomes("shown")) == 1


async def test_an_accepted_edit_is_followed_by_the_next(fake: Gateway, neovim: Neovim) -> None:
    num_requests = len(fake.requests("edit"))
    fake.edit = {"start_line": 1, "end_line": 2, "text": "    # all\n    return sum(items)\n"}
    neovim.press("<Tab><Tab>")
    await wait_until(lambda: len(fake.requests("edit")) > num_requests, timeout_s=TIMEOUT_S)
    await eventually(lambda: is_shown(neovim))

    assert len(fake.requests("edit")[-1]["recent_edits"]) == 2
    (block,) = (
        (row, details["virt_lines"])
        for row, _, details in marks(neovim)
        if details.get("virt_lines")
    )
    assert block == (0, [[["    # all", "CaretEditAdded"]]])


async def test_typing_hides_the_edit(fake: Gateway, neovim: Neovim) -> None:
    fake.edit = None
    neovim.press("x")

    await eventually(lambda: not is_shown(neovim))
    assert marks(neovim) == []
    assert neovim.line.rstrip("\n") == "def total_ofx(items):"


async def test_dismissing_hides_the_edit_and_tab_inserts_spaces_again(neovim: Neovim) -> None:
    neovim.press("<C-]>")  # the plugin's key for dismissing
    await eventually(lambda: not is_shown(neovim))
    neovim.press("<Tab>")

    await becomes(neovim, "getline('.')", "def total_of    (items):")


async def test_leaving_insert_mode_hides_the_edit(neovim: Neovim) -> None:
    neovim.press("<Esc>")

    await eventually(lambda: not is_shown(neovim))
    assert marks(neovim) == []
