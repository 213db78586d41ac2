"""The command that writes a docstring: its request and its edit, or why there is no edit."""

import asyncio

import pytest

from caret_ls.docstring_writer import DocstringEdit, DocstringWriter, WriterState
from caret_ls.frames import RequestContext
from caret_ls.gateway_connection import RequestEnded
from caret_ls.skip_rules import SkipReason
from caret_ls.status_board import SignedOutReason, StatusBoard
from caret_ls.text_document import Position
from caret_ls.workspace import OpenFile, OpenFiles
from tests.fakes.polling import wait_until
from tests.unit.caret_ls.provider_harness import FakeGateway, response_frames

URI = "file:///nowhere/a.py"
TEXT = "def f(a):\n    return a\n"
JSDOC = "class A {\n  f(a) {\n    return a;\n  }\n}\n"


class Harness:
    """A writer with an open file and a fake gateway."""

    def __init__(self, text: str = TEXT, language: str = "python") -> None:
        self.gateway = FakeGateway()
        self.modes = frozenset({"docstring"})
        self.is_forbidden = False  # files must not be sent: excluded, secret or generated
        self.files = OpenFiles(lambda _: None)
        self.file = self.files.open(URI, language, text)
        self.board = StatusBoard(lambda _: None)
        self.board.set(is_connected=True)
        state = WriterState(
            self.files,
            self.board,
            modes_of=lambda _repository: self.modes,
            can_send=self._can_send,
            build_request_context=lambda _file: RequestContext(),
            new_id=lambda: "1",
        )
        self.writer = DocstringWriter(state, self.gateway)

    def _can_send(self, _file: OpenFile) -> bool:
        return not self.is_forbidden


async def test_a_docstring_is_inserted_below_the_signature() -> None:
    harness = Harness()
    harness.gateway.ready.append(response_frames("Return a.", '"""'))

    edit = await harness.writer.write(URI, 1)

    assert edit == DocstringEdit(URI, Position(1, 0), '    """Return a."""\n')
    (frame,) = harness.gateway.requests
    assert (frame["mode"], frame["trigger"]) == ("docstring", "manual")
    assert frame["prefix"] == 'def f(a):\n    """'
    assert frame["suffix"] == "\n    return a\n"


async def test_a_form_feed_does_not_end_a_line() -> None:
    harness = Harness("import a\n\f\n" + TEXT)
    harness.gateway.ready.append(response_frames("Return a.", '"""'))

    edit = await harness.writer.write(URI, 3)

    assert edit == DocstringEdit(URI, Position(3, 0), '    """Return a."""\n')


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Return a.", '    """Return a."""\n'),
        ('Return a.\n\n    Slowly.\n    """\n    x', '    """Return a.\n\n    Slowly.\n    """\n'),
    ],
)
async def test_missing_closing_marks_are_added_and_text_after_them_is_dropped(
    answer: str, text: str
) -> None:
    harness = Harness()
    harness.gateway.ready.append(response_frames(answer))

    edit = await harness.writer.write(URI, 0)

    assert isinstance(edit, DocstringEdit)
    assert edit.text == text


async def test_a_jsdoc_is_inserted_above_the_method() -> None:
    harness = Harness(JSDOC, "javascript")
    harness.gateway.ready.append(response_frames("\n   * Return a.\n   */"))

    edit = await harness.writer.write(URI, 2)

    assert edit == DocstringEdit(URI, Position(1, 0), "  /**\n   * Return a.\n   */\n")
    assert harness.gateway.requests[0]["prefix"] == "class A {\n  /**"


async def test_a_file_that_has_changed_during_the_request_is_not_edited() -> None:
    harness = Harness()
    writing = asyncio.create_task(harness.writer.write(URI, 0))
    await wait_until(lambda: bool(harness.gateway.requests))
    harness.file.change(Position(0, 0), Position(0, 0), "#\n")
    harness.gateway.respond("1", 'Return a."""')

    assert await writing is SkipReason.FILE_CHANGED


async def test_a_cancelled_command_cancels_its_request() -> None:
    harness = Harness()
    writing = asyncio.create_task(harness.writer.write(URI, 0))
    await wait_until(lambda: bool(harness.gateway.requests))
    writing.cancel()
    await asyncio.wait({writing})

    assert harness.gateway.cancelled == ["1"]
    assert harness.board.num_in_flight == 0


async def test_skip_reasons_are_reported_without_a_request() -> None:
    closed, signed_out, offline, mode_off, excluded = (Harness() for _ in range(5))
    without_function, with_docstring = Harness(), Harness()
    signed_out.board.set(signed_out_reason=SignedOutReason.NO_KEY)
    offline.board.set(is_connected=False)
    mode_off.modes = frozenset()
    excluded.is_forbidden = True
    without_function.files.open(URI, "python", "x = 1\n")
    with_docstring.files.open(URI, "python", 'def f():\n    """Return."""\n')
    closed.files.close(URI)
    expected = [
        (closed, SkipReason.FILE_CLOSED),
        (signed_out, SkipReason.SIGNED_OUT),
        (offline, SkipReason.OFFLINE),
        (mode_off, SkipReason.DOCSTRING_OFF),
        (excluded, SkipReason.EXCLUDED),
        (without_function, SkipReason.NO_FUNCTION),
        (with_docstring, SkipReason.HAS_DOCSTRING),
    ]

    for harness, reason in expected:
        assert await harness.writer.write(URI, 0) is reason
        assert harness.gateway.requests == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [(".env.py", SkipReason.SECRET_FILE), ("a_pb2.py", SkipReason.GENERATED_FILE)],
)
async def test_a_secret_or_generated_file_has_a_reason_of_its_own(
    name: str, reason: SkipReason
) -> None:
    harness, uri = Harness(), f"file:///nowhere/{name}"
    harness.is_forbidden = True
    harness.files.open(uri, "python", TEXT)

    assert await harness.writer.write(uri, 0) is reason


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ([RequestEnded("insufficient_scope")], SkipReason.DOCSTRING_OFF),
        ([RequestEnded("no_pool")], SkipReason.NO_MODEL),
        ([RequestEnded("offline")], SkipReason.OFFLINE),
        (response_frames("", finish_reason="budget_exceeded"), SkipReason.OVER_BUDGET),
        (response_frames("", finish_reason="stop"), SkipReason.NOTHING_TO_SUGGEST),
        (response_frames("a", finish_reason="filtered"), SkipReason.NOTHING_TO_SUGGEST),
    ],
)
async def test_a_request_that_ends_without_a_docstring_has_a_reason(
    response: list[dict[str, object] | RequestEnded], reason: SkipReason
) -> None:
    harness = Harness()
    harness.gateway.ready.append(response)

    assert await harness.writer.write(URI, 0) is reason
