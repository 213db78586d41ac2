"""A chat: the request that is sent, and the result that the user sees."""

import re
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from caret_ls.chat import Chat, ChatRequest, ChatResult, ChatState, SentContext
from caret_ls.chat_context import (
    ChatCommand,
    ChatContext,
    ConversationTurn,
    SelectedCode,
    build_body,
)
from caret_ls.chat_stream import ChatEnd, ChatFailed
from caret_ls.frames import FrameFile, RequestContext
from caret_ls.gateway_connection import Address
from caret_ls.skip_rules import SkipReason
from caret_ls.status_board import StatusBoard
from caret_ls.text_document import Position
from caret_ls.workspace import OpenFile, OpenFiles

URI = "file:///nowhere/a.py"
TEXT = "import os\n\n\ndef f():\n    return 1\n"
OTHER_FILE = FrameFile("b.py", "b = 1\n", edited_at=0.0)
QUESTION = (ConversationTurn("user", "Why?"),)


class Harness:
    """A chat with an open file and a fake gateway.

    Each list in `answers` is the streamed answer to one request.
    """

    def __init__(self, *answers: list[str | ChatEnd | ChatFailed]) -> None:
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self.contexts: list[SentContext] = []
        self.num_refused = 0  # refusals that show that the policy has changed
        self.modes = frozenset({"inline", "chat"})
        self.is_forbidden = False  # files must not be sent: excluded, secret or generated
        self.address: Address | None = Address("http://127.0.0.1:1", "cpk_test_x")
        self.files = OpenFiles(lambda _: None)
        self.files.open(URI, "python", TEXT)
        self.board = StatusBoard(lambda _: None)
        self.chat = Chat(
            ChatState(
                self.files,
                self.board,
                modes_of=lambda _repository: self.modes,
                can_send=self._can_send,
                build_request_context=lambda _file: RequestContext(files=(OTHER_FILE,)),
                get_address=lambda: self.address,
                on_refused=self._on_refused,
            ),
            self._stream,
        )

    async def ask(
        self, turns: tuple[ConversationTurn, ...] = QUESTION, **fields: Any
    ) -> ChatResult:
        request = ChatRequest(turns, **({"uri": URI} | fields))
        return await self.chat.ask(
            request, on_context=self.contexts.append, on_text=self.texts.append
        )

    def _can_send(self, _file: OpenFile) -> bool:
        return not self.is_forbidden

    def _on_refused(self) -> None:
        self.num_refused += 1

    async def _stream(
        self, _address: Address, body: dict[str, Any]
    ) -> AsyncGenerator[str | ChatEnd, None]:
        self.bodies.append(body)
        for part in self.answers.pop(0):
            if isinstance(part, ChatFailed):
                raise part
            yield part


async def test_the_answer_arrives_part_by_part() -> None:
    harness = Harness(["Be", "cause.", ChatEnd("stop")])

    result = await harness.ask()

    assert result == ChatResult("stop")
    assert harness.texts == ["Be", "cause."]
    assert harness.board.num_in_flight == 0


async def test_the_current_file_the_selection_and_open_files_are_sent() -> None:
    harness = Harness([ChatEnd("stop")])

    await harness.ask(start=Position(3, 0), end=Position(5, 0))

    (body,) = harness.bodies
    assert [file["path"] for file in body["caret_files"]] == ["a.py", "b.py"]
    assert body["caret_path"] == "a.py"
    assert body["messages"][-1]["content"] == (
        "Selected code, `a.py`, lines 4 to 5:\n\n```python\ndef f():\n    return 1\n```\n\nWhy?"
    )
    assert harness.contexts == [SentContext(("a.py", "b.py"), (4, 5))]


@pytest.mark.parametrize("run", ["", "``", "```", "`````", "`" * 9])
def test_the_selected_code_cannot_close_its_fence(run: str) -> None:
    code = SelectedCode("a.md", "markdown", f"a\n{run}\nb", first_line=1)

    body = build_body(QUESTION, ChatContext(selection=code))

    (fence,) = re.findall("^(`{3,})markdown$", body["messages"][-1]["content"], re.MULTILINE)
    assert len(fence) == max(3, len(run) + 1)
    assert body["messages"][-1]["content"].count(fence) == 2


async def test_other_open_files_are_not_sent_if_the_user_turns_them_off() -> None:
    harness = Harness([ChatEnd("stop")])

    await harness.ask(has_open_files=False)

    assert [file["path"] for file in harness.bodies[0]["caret_files"]] == ["a.py"]


async def test_a_command_asks_its_own_question_about_the_line_of_the_cursor() -> None:
    harness = Harness([ChatEnd("stop")])
    turn = ConversationTurn("user", "Erklären", ChatCommand.EXPLAIN)

    await harness.ask((turn,), start=Position(3, 2), end=Position(3, 2))

    content = harness.bodies[0]["messages"][-1]["content"]
    assert "The cursor is at this code, `a.py`, lines 4 to 4:" in content
    assert content.endswith("Explain this code: its purpose first, then how it works.")


async def test_without_a_file_only_the_messages_are_sent() -> None:
    harness = Harness([ChatEnd("stop")])

    await harness.ask(uri=None)

    assert (harness.bodies[0]["caret_files"], harness.bodies[0]["caret_path"]) == ([], "")


async def test_a_question_about_excluded_code_is_not_sent() -> None:
    harness = Harness()
    harness.is_forbidden = True

    result = await harness.ask(start=Position(3, 0), end=Position(5, 0))

    assert result == ChatResult("", SkipReason.EXCLUDED)
    assert harness.bodies == []


async def test_a_question_about_a_secret_file_is_not_sent() -> None:
    harness, uri = Harness(), "file:///nowhere/.env"
    harness.files.open(uri, "shellscript", TEXT)
    harness.is_forbidden = True

    result = await harness.ask(uri=uri, start=Position(3, 0), end=Position(5, 0))

    assert result == ChatResult("", SkipReason.SECRET_FILE)
    assert harness.bodies == []


async def test_a_question_without_a_selection_is_sent_without_the_excluded_file() -> None:
    harness = Harness([ChatEnd("stop")])
    harness.is_forbidden = True

    await harness.ask(start=Position(0, 0), end=Position(0, 0))

    (body,) = harness.bodies
    assert ([file["path"] for file in body["caret_files"]], body["caret_path"]) == (["b.py"], "")
    assert harness.contexts == [SentContext(("b.py",), withheld="a.py")]


async def test_an_earlier_command_does_not_stop_a_question_without_a_selection() -> None:
    harness = Harness([ChatEnd("stop")])
    harness.is_forbidden = True
    command = ConversationTurn("user", "Explain", ChatCommand.EXPLAIN)

    result = await harness.ask((command, ConversationTurn("assistant", "It adds."), *QUESTION))

    assert result == ChatResult("stop")
    assert harness.bodies[0]["caret_path"] == ""


async def test_a_chat_that_the_policy_does_not_allow_is_not_sent() -> None:
    harness = Harness()
    harness.modes = frozenset({"inline"})

    assert await harness.ask() == ChatResult("", SkipReason.CHAT_OFF)


async def test_without_a_key_the_chat_is_not_sent() -> None:
    harness = Harness()
    harness.address = None

    assert await harness.ask() == ChatResult("", SkipReason.SIGNED_OUT)


@pytest.mark.parametrize(
    ("code", "reason", "num_refused"),
    [
        ("insufficient_scope", SkipReason.CHAT_OFF, 1),
        ("feature_disabled", SkipReason.CHAT_OFF, 1),
        ("path_excluded", SkipReason.EXCLUDED, 1),
        ("revoked_api_key", SkipReason.SIGNED_OUT, 0),
        ("budget_exceeded", SkipReason.OVER_BUDGET, 0),
        ("rate_limited", SkipReason.OVERLOADED, 0),
        ("engine_busy", SkipReason.OVERLOADED, 0),
        ("no_pool", SkipReason.NO_MODEL, 0),
        ("offline", SkipReason.OFFLINE, 0),
        ("internal_error", SkipReason.REFUSED, 0),
    ],
)
async def test_a_failed_chat_keeps_its_text_and_shows_the_reason(
    code: str, reason: SkipReason, num_refused: int
) -> None:
    harness = Harness(["Be", ChatFailed(code)])

    assert await harness.ask() == ChatResult("", reason)
    assert (harness.texts, harness.num_refused) == (["Be"], num_refused)


async def test_a_model_without_a_system_role_is_asked_again_without_a_system_message() -> None:
    harness = Harness([ChatFailed("invalid_messages")], ["Because.", ChatEnd("stop")])

    result = await harness.ask()

    assert result == ChatResult("stop")
    assert [message["role"] for message in harness.bodies[0]["messages"]] == ["system", "user"]
    assert [message["role"] for message in harness.bodies[1]["messages"]] == ["user"]


async def test_a_withheld_or_shed_answer_has_a_reason() -> None:
    harness = Harness([ChatEnd("filtered")], [ChatEnd("shed")])

    results = [await harness.ask(), await harness.ask()]

    assert [result.reason for result in results] == [SkipReason.WITHHELD, SkipReason.OVERLOADED]
