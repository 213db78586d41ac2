"""Lines of a file and of the part that was sent: edits and diagnostics are mapped between them."""

import pytest

from caret_ls.next_edit import sent_lines
from caret_ls.next_edit.sent_lines import (
    MAX_DIAGNOSTICS,
    MAX_MESSAGE_CHARS,
    Diagnostic,
    LineEdit,
    SentLines,
    find_sent_lines,
)
from caret_ls.text_document import Position, split_lines
from caret_ls.workspace import OpenFile, OpenFiles

TEXT = "a\nb\nc\nd\n"


def sent_lines_of(
    text: str, *, first: int = 0, count: int | None = None, cursor: int = 0
) -> SentLines:
    lines = split_lines(text)
    return SentLines(lines, first, cursor, len(lines) if count is None else count)


def apply(text: str, edit: LineEdit) -> str:
    """Return the text as an editor changes it."""
    file = open_file(text)
    file.change(edit.start, edit.end, edit.new_text)
    return file.text


def open_file(text: str) -> OpenFile:
    return OpenFiles(lambda _: None).open("file:///nowhere/a.py", "python", text)


@pytest.mark.parametrize(
    ("text", "start", "end", "new_text", "changed"),
    [
        (TEXT, 1, 2, "B\n", "a\nB\nc\nd\n"),
        (TEXT, 1, 3, "", "a\nd\n"),
        (TEXT, 1, 1, "x\ny\n", "a\nx\ny\nb\nc\nd\n"),
        (TEXT, 4, 4, "e\n", "a\nb\nc\nd\ne\n"),
        (TEXT, 0, 4, "", ""),
        (TEXT, 1, 2, "B", "a\nB\nc\nd\n"),  # a line end is missing
        ("", 0, 0, "x\n", "x\n"),
        # The last line has no line end.
        ("a\nb", 1, 2, "B\n", "a\nB"),
        ("a\nb", 2, 2, "c\n", "a\nb\nc"),
        ("a\nb", 1, 2, "", "a\n"),
        ("a\nb", 0, 1, "A\n", "A\nb"),
        # The file has other line ends.
        ("a\r\nb\r\n", 1, 2, "B\n", "a\r\nB\r\n"),
        ("a\r\nb", 2, 2, "c\nd\n", "a\r\nb\r\nc\r\nd"),
    ],
)
def test_an_edit_changes_the_lines_that_it_names(
    text: str, start: int, end: int, new_text: str, changed: str
) -> None:
    edit = sent_lines_of(text).to_file_edit(start, end, new_text)

    assert edit is not None
    assert apply(text, edit) == changed


def test_an_edit_is_counted_from_the_first_line_that_was_sent() -> None:
    edit = sent_lines_of(TEXT, first=2, count=2).to_file_edit(0, 1, "C\n")

    assert edit == LineEdit(Position(2, 0), Position(3, 0), "c\n", "C\n")


def test_lines_that_stay_the_same_are_not_part_of_the_edit() -> None:
    edit = sent_lines_of(TEXT).to_file_edit(0, 4, "a\nb\nx\nc\nd\n")

    assert edit == LineEdit(Position(2, 0), Position(2, 0), "", "x\n")


@pytest.mark.parametrize(
    ("start", "end", "new_text"),
    [(1, 2, "b\n"), (2, 1, "x\n"), (-1, 1, "x\n"), (0, 3, "x\n"), (3, 3, "x\n")],
)
def test_an_edit_without_a_change_or_of_other_lines_is_none(
    start: int, end: int, new_text: str
) -> None:
    sent = sent_lines_of(TEXT, count=2)

    assert sent.to_file_edit(start, end, new_text) is None


@pytest.mark.parametrize("text", [TEXT, "a\r\nb\r\nc\r\nd", "äöü\n\n\n𝒳"])
@pytest.mark.parametrize("line", [0, 2, 3, 99])
def test_the_lines_of_a_context_are_those_of_the_file(text: str, line: int) -> None:
    file = open_file(text)
    position = Position(line, 1)

    sent = find_sent_lines(file.buffer.lines, position, file.context_at(position, is_invoked=False))

    assert (sent.first, sent.count) == (0, len(split_lines(text)))
    assert sent.cursor == min(line, text.count("\n"))


def test_a_context_that_leaves_out_lines_begins_with_a_later_one() -> None:
    line = "x" * 1_023 + "\n"
    file = open_file(line * 300)
    position = Position(200, 0)

    sent = find_sent_lines(file.buffer.lines, position, file.context_at(position, is_invoked=False))

    assert (sent.first, sent.cursor, sent.count) == (72, 200, 128 + 64)


def test_diagnostics_get_the_numbers_of_the_lines_that_were_sent() -> None:
    sent = sent_lines_of(TEXT, first=1, count=2, cursor=1)
    diagnostics = [Diagnostic(line, "error", "wrong") for line in (3, 2, 1, 0)]

    assert sent.select_diagnostics(diagnostics) == [
        Diagnostic(0, "error", "wrong"),
        Diagnostic(1, "error", "wrong"),
    ]


def test_the_nearest_diagnostics_are_selected_and_come_first() -> None:
    sent = sent_lines_of("x\n" * 100, cursor=50)
    diagnostics = [Diagnostic(line, "hint", "unused") for line in range(100)]

    selected = sent.select_diagnostics(diagnostics)

    assert [each.line for each in selected[:3]] == [50, 49, 51]
    assert {each.line for each in selected} == set(range(42, 42 + MAX_DIAGNOSTICS))


def test_diagnostics_are_cut_and_must_have_a_message_and_a_severity_of_the_protocol() -> None:
    sent = sent_lines_of(TEXT)
    diagnostics = [
        Diagnostic(0, "error", "x" * 1_000),
        Diagnostic(0, "fatal", "x"),
        Diagnostic(0, "error", " "),
    ]

    (selected,) = sent.select_diagnostics(diagnostics)

    assert len(selected.message) == MAX_MESSAGE_CHARS
    assert set(sent_lines.SEVERITIES) == {"error", "warning", "information", "hint"}
