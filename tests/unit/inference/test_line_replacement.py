"""The smallest replacement of lines that turns the editable region into the model's answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.completion.edit import ProposedEdit
from inference.filtering.edits.line_replacement import find_replacement, to_proposed_edit
from tests.fakes.edits import make_region

LINES = st.lists(st.text("ab", max_size=2), min_size=1, max_size=6)


def _propose(
    lines: list[str], answer: str, *, start_line: int = 0, has_last_line: bool = False
) -> ProposedEdit | None:
    region = make_region(*lines, start_line=start_line, has_last_line=has_last_line)
    replacement = find_replacement(region, answer)
    return None if replacement is None else to_proposed_edit(region, replacement)


def _apply(lines: list[str], edit: ProposedEdit, *, has_last_line: bool) -> str:
    whole_lines = [f"{line}\n" for line in lines]
    if has_last_line:
        whole_lines[-1] = lines[-1]
    return "".join([*whole_lines[: edit.start_line], edit.text, *whole_lines[edit.end_line :]])


@pytest.mark.parametrize(
    ("answer", "edit"),  # an edit: first line, line after the last, text, changed characters
    [
        ("a\nB\nc", ProposedEdit(11, 12, "B\n", 1)),
        ("a\nb\nx\nc", ProposedEdit(12, 12, "x\n", 1)),
        ("a\nc", ProposedEdit(11, 12, "", 1)),
        ("A\nb\nC", ProposedEdit(10, 13, "A\nb\nC\n", 5)),
        ("a\nbc\nbd\nc", ProposedEdit(11, 12, "bc\nbd\n", 4)),
        ("", ProposedEdit(10, 13, "\n", 5)),
    ],
    ids=["change", "insertion", "deletion", "two changes", "one line becomes two", "all deleted"],
)
def test_only_the_changed_lines_are_replaced(answer: str, edit: ProposedEdit) -> None:
    assert _propose(["a", "b", "c"], answer, start_line=10) == edit


@pytest.mark.parametrize("answer", ["a\n  b\nc", "a\n  b  \nc\t", "a\r\n  b\r\nc"])
def test_white_space_at_the_end_of_lines_is_no_change(answer: str) -> None:
    assert _propose(["a", "  b", "c "], answer) is None


def test_the_indentation_of_the_cursors_blank_line_is_no_change() -> None:
    assert _propose(["def f():", "    "], "def f():\n") is None


def test_a_line_added_after_the_last_line_of_the_file_replaces_the_last_line_too() -> None:
    edit = _propose(["a", "b"], "a\nb\nc", has_last_line=True)

    assert edit == ProposedEdit(1, 2, "b\nc", 1)


def test_a_line_added_before_an_empty_last_line_is_inserted() -> None:
    assert _propose(["a", ""], "a\nb\n", has_last_line=True) == ProposedEdit(1, 1, "b\n", 1)


def test_deleting_the_last_lines_of_a_file_deletes_the_line_break_before_them() -> None:
    assert _propose(["a", "b"], "a", has_last_line=True) == ProposedEdit(0, 2, "a", 1)


@pytest.mark.parametrize("answer", ["a\n", "a"])
def test_a_deletion_keeps_the_line_break_at_the_end_of_a_file(answer: str) -> None:
    edit = _propose(["a", "b", ""], answer, has_last_line=True)

    assert edit is not None
    assert _apply(["a", "b", ""], edit, has_last_line=True) == "a\n"


def test_characters_are_counted_without_those_that_both_texts_share() -> None:
    edit = _propose(["    return w * 2"], "    return width * 2")

    assert edit is not None
    assert edit.num_changed_chars == len("idth")


@given(lines=LINES, answer=LINES, has_last_line=st.booleans())
def test_the_replacement_turns_the_region_into_the_answer(
    lines: list[str], answer: list[str], has_last_line: bool
) -> None:
    edit = _propose(lines, "\n".join(answer), has_last_line=has_last_line)

    edit_without_effect = ProposedEdit(0, 0, "", 1)
    before = _apply(lines, edit_without_effect, has_last_line=has_last_line)
    after = before if edit is None else _apply(lines, edit, has_last_line=has_last_line)
    expected = "\n".join(answer) + ("" if has_last_line else "\n")
    # A deletion keeps the line break at the end of a file.
    is_break_kept = has_last_line and not lines[-1] and after == f"{expected}\n"
    assert after == expected or is_break_kept
