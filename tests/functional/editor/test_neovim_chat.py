"""The plugin for Neovim: chat, docstrings, blocks and alternatives. The gateway is a fake."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import pytest

from tests.fakes.chat_gateway import ChatGateway, chat_gateway
from tests.fakes.polling import wait_until
from tests.functional.editor.neovim import TIMEOUT_S, Neovim, running_neovim
from tests.unit.caret_ls.fake_gateway import Gateway, gateway

pytestmark = pytest.mark.deep  # drives Neovim

_KEY: Final = "cpk_test_" + "0" * 28
_TEXT: Final = "import os\n\n\ndef f(a):\n    return a\n\n\nx = 1\n"
_ANSWER: Final = "Shorter:\n\n```python\ndef f(b):\n    return b\n```\n"


@pytest.fixture
async def fake() -> AsyncIterator[ChatGateway]:
    async with chat_gateway() as gateway_fake:
        yield gateway_fake


@pytest.fixture
async def neovim(fake: ChatGateway, tmp_path: Path) -> AsyncIterator[Neovim]:
    """Run Neovim with a gateway for chats."""
    file = tmp_path / "a.py"
    file.write_text(_TEXT)
    with running_neovim(tmp_path, file, key=_KEY, gateway_url=fake.url) as editor:
        await becomes(editor, "luaeval(\"#vim.lsp.get_clients({ name = 'caret' })\")", "1")
        yield editor


def lua(neovim: Neovim, expression: str) -> str:
    return neovim.evaluate(f'luaeval("{expression}")').rstrip("\n")


async def becomes(neovim: Neovim, expression: str, value: str) -> None:
    await eventually(lambda: neovim.evaluate(expression).rstrip("\n") == value)


async def eventually(is_true: Callable[[], bool]) -> None:
    """Wait for the condition without blocking the loop, on which the gateway answers."""
    async with asyncio.timeout(TIMEOUT_S):
        while not await asyncio.to_thread(is_true):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.1)


def chat_of(neovim: Neovim) -> str:
    return lua(neovim, "require('caret.chat').text()")


def buffer_text(neovim: Neovim) -> str:
    return neovim.evaluate("join(getbufline('a.py', 1, '$'), nr2char(10))").rstrip("\n")


# The value of "&diff .. tabpagenr('$')": the window shows a diff (1), and there are two tabs (2).
_DIFF_IN_SECOND_TAB: Final = "12"


async def explain(fake: ChatGateway, neovim: Neovim) -> None:
    """Ask about the function, and wait until the answer is complete."""
    await asyncio.to_thread(neovim.press, ":4,5Caret explain<CR>")
    await eventually(lambda: bool(fake.bodies))
    fake.send(*_ANSWER)  # one part per character
    await eventually(lambda: _ANSWER.rstrip() in chat_of(neovim))
    fake.end()
    await becomes(neovim, "luaeval(\"require('caret.chat').is_busy() and 1 or 0\")", "0")


async def test_an_answer_about_the_selected_lines_is_streamed(
    fake: ChatGateway, neovim: Neovim
) -> None:
    await explain(fake, neovim)

    text = await asyncio.to_thread(chat_of, neovim)
    assert text.startswith("## You\n\nExplain this code\n\n## Caret\n\n")
    assert "*Sent with: a.py, lines 4 to 5*" in text
    (body,) = fake.bodies
    assert "`a.py`, lines 4 to 5:\n\n```python\ndef f(a):" in body["messages"][-1]["content"]
    assert [file["path"] for file in body["caret_files"]] == ["a.py"]


async def test_a_code_block_is_reviewed_as_a_diff_and_applied(
    fake: ChatGateway, neovim: Neovim
) -> None:
    await explain(fake, neovim)
    # In the chat, `a` shows the diff of the code at the cursor; in the diff, `a` applies it.
    await asyncio.to_thread(neovim.press, "/return b<CR>a")
    await becomes(neovim, "&diff .. tabpagenr('$')", _DIFF_IN_SECOND_TAB)
    await asyncio.to_thread(neovim.press, "a")
    await becomes(neovim, "tabpagenr('$')", "1")

    text = await asyncio.to_thread(buffer_text, neovim)
    assert text == _TEXT.replace("(a)", "(b)").replace("return a", "return b").rstrip()


async def test_a_diff_for_code_that_has_moved_is_applied_where_it_is_now(
    fake: ChatGateway, neovim: Neovim
) -> None:
    await explain(fake, neovim)
    await asyncio.to_thread(neovim.press, ":call appendbufline('a.py', 0, '# new')<CR>")
    await asyncio.to_thread(neovim.press, "/return b<CR>a")
    await becomes(neovim, "&diff .. tabpagenr('$')", _DIFF_IN_SECOND_TAB)
    await asyncio.to_thread(neovim.press, "a")
    await becomes(neovim, "tabpagenr('$')", "1")

    text = await asyncio.to_thread(buffer_text, neovim)
    assert text.startswith("# new\nimport os\n\n\ndef f(b):\n    return b\n\n")


async def test_a_diff_for_code_that_has_changed_is_refused(
    fake: ChatGateway, neovim: Neovim
) -> None:
    await explain(fake, neovim)
    await asyncio.to_thread(neovim.press, ":call setbufline('a.py', 5, '    return a + 1')<CR>")
    await asyncio.to_thread(neovim.press, "/return b<CR>a")

    await eventually(lambda: "the code has changed" in neovim.evaluate("execute('messages')"))
    assert (await asyncio.to_thread(neovim.evaluate, "tabpagenr('$')")).strip() == "1"


async def test_ctrl_c_stops_an_answer_and_its_text_stays(fake: ChatGateway, neovim: Neovim) -> None:
    await asyncio.to_thread(neovim.press, ":Caret chat Why?<CR>")
    await eventually(lambda: bool(fake.bodies))
    fake.send("Because ")
    await eventually(lambda: "Because" in chat_of(neovim))
    await asyncio.to_thread(neovim.press, "<C-c>")
    await eventually(lambda: "> Stopped." in chat_of(neovim))
    await wait_until(lambda: fake.num_cancelled == 1, timeout_s=TIMEOUT_S)

    assert "Because" in await asyncio.to_thread(chat_of, neovim)


async def test_a_refused_chat_shows_the_reason(fake: ChatGateway, neovim: Neovim) -> None:
    fake.error = "insufficient_scope"
    await asyncio.to_thread(neovim.press, ":Caret chat Why?<CR>")

    await eventually(
        lambda: "Your policy or your API key does not allow chats here" in chat_of(neovim)
    )


@pytest.fixture
async def suggestion_gateway() -> AsyncIterator[Gateway]:
    async with gateway() as gateway_fake:
        yield gateway_fake


@pytest.fixture
async def editor(suggestion_gateway: Gateway, tmp_path: Path) -> AsyncIterator[Neovim]:
    """Run Neovim with a gateway for suggestions."""
    file = tmp_path / "a.py"
    file.write_text(_TEXT)
    with running_neovim(
        tmp_path, file, key=_KEY, gateway_url=suggestion_gateway.url
    ) as started_editor:
        await wait_until(lambda: bool(suggestion_gateway.sockets), timeout_s=TIMEOUT_S)
        await becomes(
            started_editor, "luaeval(\"require('caret.status').is_usable() and 1 or 0\")", "1"
        )
        yield started_editor


async def test_the_command_writes_a_docstring(suggestion_gateway: Gateway, editor: Neovim) -> None:
    suggestion_gateway.suggestion = 'Return a."""'
    await asyncio.to_thread(editor.press, ":5<CR>:Caret docstring<CR>")

    await eventually(lambda: '    """Return a."""' in buffer_text(editor))
    text = await asyncio.to_thread(buffer_text, editor)
    assert text.startswith('import os\n\n\ndef f(a):\n    """Return a."""\n    return a\n')


async def test_the_command_reports_a_missing_function(
    suggestion_gateway: Gateway, editor: Neovim
) -> None:
    await asyncio.to_thread(editor.press, ":8<CR>:Caret docstring<CR>")

    await eventually(lambda: "no function here" in editor.evaluate("execute('messages')"))


async def test_keys_request_a_block_and_alternatives(
    suggestion_gateway: Gateway, editor: Neovim
) -> None:
    suggestion_gateway.suggestion = "1 + 1"
    await asyncio.to_thread(editor.press, "Goy = <M-b>")
    await eventually(lambda: editor.suggestion.rstrip("\n") == "1 + 1")
    suggestion_gateway.suggestion = "2 + 2"
    await asyncio.to_thread(editor.press, "<M-]>")
    await eventually(lambda: editor.suggestion.rstrip("\n") == "2 + 2")
    # The server requested two alternatives with the same text, so it sent Neovim only one of them.
    # Therefore, the next suggestion is the first one again.
    await asyncio.to_thread(editor.press, "<M-]>")
    await eventually(lambda: editor.suggestion.rstrip("\n") == "1 + 1")

    requests = [frame for frame in suggestion_gateway.received if frame["type"] == "complete"]
    block = next(frame for frame in requests if frame["mode"] == "block")
    assert block["trigger"] == "manual"
    assert [frame["alternative"] for frame in requests if "alternative" in frame] == [1, 2]
