"""Edits and diagnostics are converted between the lines of a file and those that were sent."""

from dataclasses import replace

import pytest

from caret_ls.next_edit import sent_lines
from caret_ls.next_edit.sent_lines import (
    MAX_DIAGNOSTICS,
    MAX_MESSAGE_CHARS,
    EditorDiagnostic,
    LineEdit,
    SentLines,
    find_sent_lines,
)
from caret_ls.text_document import Position
from caret_ls.workspace import OpenFile, OpenFiles

TEXT = "a\nb\nc\nd\n"


def sent_lines_of(text: str, *, cursor: int = 0, first: int = 0) -> SentLines:
    """Return the sent lines of a request that leaves out the lines before `first`.

    `cursor` is the line in which the cursor is.
    """
    position = Position(cursor, 0)
    context = open_file(text).context_at(position, is_invoked=False)
    lines = context.prefix.split("\n")
    context = replace(context, prefix="\n".join(lines[first:]))
    return find_sent_lines(text, position, context)


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
        # The line after the last line end is replaced, too.
        (TEXT, 4, 5, "e", "a\nb\nc\nd\ne"),
        (TEXT, 3, 5, "D\n", "a\nb\nc\nD\n"),
        ("", 0, 1, "x\n", "x\n"),
        # The last line has no line end.
        ("a\nb", 1, 2, "B", "a\nB"),
        ("a\nb", 1, 2, "b\nc", "a\nb\nc"),
        ("a\nb", 1, 2, "", "a\n"),
        ("a\nb", 0, 1, "A\n", "A\nb"),
        # The file has other line ends.
        ("a\r\nb\r\n", 1, 2, "B\n", "a\r\nB\r\n"),
        ("a\r\nb", 1, 2, "b\nc\nd", "a\r\nb\r\nc\r\nd"),
        ("a\rb\r", 1, 2, "B\n", "a\rB\n"),
    ],
)
def test_an_edit_changes_the_lines_that_it_names(
    text: str, start: int, end: int, new_text: str, changed: str
) -> None:
    edit = sent_lines_of(text).to_file_edit(start, end, new_text)

    assert edit is not None
    assert apply(text, edit) == changed


def test_an_edit_is_counted_from_the_first_line_that_was_sent() -> None:
    edit = sent_lines_of(TEXT, cursor=3, first=2).to_file_edit(0, 1, "C\n")

    assert edit == LineEdit(Position(2, 0), Position(3, 0), "c\n", "C\n")


def test_lines_that_stay_the_same_are_not_part_of_the_edit() -> None:
    edit = sent_lines_of(TEXT).to_file_edit(0, 4, "a\nb\nx\nc\nd\n")

    assert edit == LineEdit(Position(2, 0), Position(2, 0), "", "x\n")


@pytest.mark.parametrize(
    ("start", "end", "new_text"),
    [
        (1, 2, "b\n"),  # no change
        (4, 5, ""),  # no change: the line after the last line end is empty
        (2, 1, "x\n"),  # the end is before the start
        (-1, 1, "x\n"),
        (0, 6, "x\n"),
        (5, 5, "x\n"),
    ],
)
def test_an_edit_without_a_change_or_of_other_lines_is_none(
    start: int, end: int, new_text: str
) -> None:
    assert sent_lines_of(TEXT).to_file_edit(start, end, new_text) is None


@pytest.mark.parametrize("text", [TEXT, "a\r\nb\r\nc\r\nd", "äöü\n\n\n𝒳", ""])
@pytest.mark.parametrize("line", [0, 2, 3, 99])
def test_a_short_file_is_sent_whole(text: str, line: int) -> None:
    num_lines = text.count("\n") + 1

    lines = sent_lines_of(text, cursor=line)

    assert (lines.first, lines.count) == (0, num_lines)
    assert lines.cursor == min(line, num_lines - 1)


def test_the_lines_that_a_long_file_leaves_out_cannot_be_replaced() -> None:
    text = ("x" * 1_023 + "\n") * 300  # lines of 1 KiB

    lines = sent_lines_of(text, cursor=200)

    # 128 KiB before the cursor are sent, and 64 KiB from the cursor on.
    assert (lines.first, lines.cursor, lines.count) == (200 - 128, 200, 128 + 64)
    # Counted from the first line that was sent, the last one has the number 191.
    assert lines.to_file_edit(191, 192, "y\n") is not None
    assert lines.to_file_edit(191, 193, "y") is None


def test_diagnostics_get_the_numbers_of_the_lines_that_were_sent() -> None:
    lines = sent_lines_of("a\nb\nc", first=1, cursor=1)
    diagnostics = [EditorDiagnostic(line, "error", "wrong") for line in (3, 2, 1, 0)]

    assert lines.select_diagnostics(diagnostics) == [
        EditorDiagnostic(0, "error", "wrong"),
        EditorDiagnostic(1, "error", "wrong"),
    ]


def test_the_nearest_diagnostics_are_selected_and_come_first() -> None:
    lines = sent_lines_of("x\n" * 100, cursor=50)
    diagnostics = [EditorDiagnostic(line, "hint", "unused") for line in range(100)]

    selected = lines.select_diagnostics(diagnostics)

    assert [diagnostic.line for diagnostic in selected[:3]] == [50, 49, 51]
    # Half of them are before the cursor.
    assert {diagnostic.line for diagnostic in selected} == set(range(42, 42 + MAX_DIAGNOSTICS))


def test_diagnostics_are_cut_and_must_have_a_message_and_a_severity_of_the_protocol() -> None:
    lines = sent_lines_of(TEXT)
    diagnostics = [
        EditorDiagnostic(0, "error", "x" * 1_000),
        EditorDiagnostic(0, "fatal", "x"),
        EditorDiagnostic(0, "error", " "),
    ]

    (selected,) = lines.select_diagnostics(diagnostics)

    assert len(selected.message) == MAX_MESSAGE_CHARS
    assert set(sent_lines.SEVERITIES) == {"error", "warning", "information", "hint"}
