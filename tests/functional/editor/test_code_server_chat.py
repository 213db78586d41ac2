"""The chat panel in code-server: answers are streamed, stopped, refused, and applied as a diff.

The gateway is a fake that the tests control; the rest is real. Screenshots are in
`.caret/pictures/extension`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import FrameLocator, expect

from caret.local.paths import REPOSITORY
from tests.fakes.chat_gateway import ChatGateway, chat_gateway
from tests.functional.editor.scripted_workbench import (
    MARKS,
    TIMEOUT_S,
    Loop,
    open_workbench,
    run_in_thread,
)
from tests.functional.editor.workbench import Workbench
from tests.stack.waiting import wait_until

pytestmark = MARKS
PICTURES: Final = REPOSITORY / ".caret" / "pictures" / "extension"
_TEXT: Final = "def f(a):\n    return a\n"
_ANSWER: Final = "It is **short**:\n\n```python\ndef f(b):\n    return b\n```\n\n<img src=x>\n"
_FILES: Final = ("applied.py", "changed.py", "stopped.py", "refused.py")
_TIMEOUT_MS: Final = 30_000


class ScriptedChat:
    """The gateway, which runs in a thread of its own."""

    def __init__(self, loop: Loop, gateway: ChatGateway) -> None:
        self._loop = loop
        self.gateway = gateway

    def run(self, call: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(call)

    def wait_for_question(self, number: int) -> None:
        wait_until(lambda: len(self.gateway.bodies) == number, timeout_s=TIMEOUT_S)


@pytest.fixture(scope="module")
def scripted_chat() -> Iterator[ScriptedChat]:
    with run_in_thread(chat_gateway()) as (loop, gateway):
        yield ScriptedChat(loop, gateway)


@pytest.fixture(scope="module")
def workbench(
    scripted_chat: ScriptedChat, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    with open_workbench(
        scripted_chat.gateway.url,
        tmp_path_factory.mktemp("code-server"),
        dict.fromkeys(_FILES, _TEXT),
        signed_in_status="The gateway cannot be reached",  # the fake one has no WebSockets
    ) as opened_workbench:
        yield opened_workbench


def _open(workbench: Workbench, name: str) -> Path:
    """Show the explorer, because the chat may have replaced it, and open a file."""
    workbench.press_keys("Control+Shift+e")
    return workbench.open_file(name)


def _request_explanation(
    workbench: Workbench, scripted_chat: ScriptedChat, name: str
) -> tuple[Path, FrameLocator]:
    """Request an explanation of all code of a file. Return the file and the panel's page."""
    num_questions = len(scripted_chat.gateway.bodies)
    file = _open(workbench, name)
    workbench.press_keys("Control+a")
    workbench.run_command("Caret: Explain")
    scripted_chat.wait_for_question(num_questions + 1)
    return file, workbench.chat


def _send_answer(scripted_chat: ScriptedChat, panel: FrameLocator) -> None:
    scripted_chat.run(lambda: scripted_chat.gateway.send(*_ANSWER))  # one part per character
    expect(panel.locator("article").last).to_contain_text("<img src=x>", timeout=_TIMEOUT_MS)
    scripted_chat.run(scripted_chat.gateway.end)
    # This button replaces the button "Stop" at the end of the answer.
    expect(panel.get_by_role("button", name="Send")).to_be_visible()


def test_an_answer_is_streamed_and_its_code_applied_as_a_diff(
    workbench: Workbench, scripted_chat: ScriptedChat
) -> None:
    file, panel = _request_explanation(workbench, scripted_chat, "applied.py")
    expect(panel.locator(".waiting")).to_be_visible()
    expect(panel.locator(".chip").first).to_have_text("applied.py, lines 1 to 2")
    _send_answer(scripted_chat, panel)
    workbench.take_screenshot(PICTURES / "chat.png")

    assert panel.locator("img").count() == 0  # HTML in an answer is shown as text
    panel.get_by_role("button", name="Review change").last.click()
    workbench.expect_tab("applied.py: proposed change")
    workbench.take_screenshot(PICTURES / "proposal.png")
    workbench.run_command("Caret: Apply the Proposed Change")
    _open(workbench, "applied.py")
    workbench.save_and_expect(file, "def f(b):\n    return b\n")

    body = scripted_chat.gateway.bodies[-1]
    assert "applied.py`, lines 1 to 2" in body["messages"][-1]["content"]


def test_a_diff_for_code_that_has_changed_is_refused(
    workbench: Workbench, scripted_chat: ScriptedChat
) -> None:
    file, panel = _request_explanation(workbench, scripted_chat, "changed.py")
    _send_answer(scripted_chat, panel)
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
    _, panel = _request_explanation(workbench, scripted_chat, "stopped.py")
    scripted_chat.run(lambda: scripted_chat.gateway.send("Because"))
    expect(panel.locator("article").last).to_contain_text("Because", timeout=_TIMEOUT_MS)
    panel.get_by_role("button", name="Stop").click()
    expect(panel.locator(".note").last).to_have_text("Stopped.")

    wait_until(lambda: scripted_chat.gateway.num_cancelled == 1, timeout_s=TIMEOUT_S)
    expect(panel.locator("article").last).to_contain_text("Because")


def test_a_refused_question_gets_the_reason(
    workbench: Workbench, scripted_chat: ScriptedChat
) -> None:
    scripted_chat.gateway.error = "insufficient_scope"
    try:
        _, panel = _request_explanation(workbench, scripted_chat, "refused.py")
        expect(panel.locator(".note").last).to_have_text(
            "Your policy or your API key does not allow chats here.", timeout=_TIMEOUT_MS
        )
    finally:
        scripted_chat.gateway.error = None  # the other tests use the same gateway
