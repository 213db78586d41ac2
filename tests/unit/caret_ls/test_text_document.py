"""A document and its changes, in the positions of the language server protocol."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret_ls.text_document import (
    Position,
    TextDocument,
    TextEdit,
    chars_from_utf16,
    split_lines,
    utf16_length,
)

texts = st.text(
    alphabet=["a", "b", "\n", "\r", "\t", "é", "中", "😀", "\x0c", "\u2028"], max_size=30
)


def position_of(text: str, offset: int) -> Position:
    """Compute the position of an offset by the definition of positions.

    A position consists of the number of lines before the offset's line, and of the number of UTF-16
    code units from the start of this line to the offset.
    """
    lines = split_lines(text)
    for number, line in enumerate(lines):
        content = line.rstrip("\r\n")
        if offset <= len(content):
            return Position(number, len(content[:offset].encode("utf-16-le")) // 2)
        offset -= len(line)
        if offset < 0:  # within "\r\n", where no cursor can be
            return Position(number, utf16_length(content))
    return Position(len(lines), 0)


def offset_of(text: str, position: Position) -> int:
    return TextDocument(text).to_offset(position)


def apply_edit(text: str, edit: TextEdit) -> str:
    return text[: edit.at] + edit.inserted + text[edit.at + edit.deleted :]


@given(texts)
def test_splitting_into_lines_keeps_the_text(text: str) -> None:
    assert "".join(split_lines(text)) == text
    assert TextDocument(text).text == text


@given(texts, st.data())
def test_a_change_gives_the_edit_and_the_new_text(text: str, data: st.DataObject) -> None:
    buffer = TextDocument(text)
    offsets = [data.draw(st.integers(0, len(text))) for _ in range(2)]
    start, end = sorted((position_of(text, offset) for offset in offsets), key=_order)
    inserted = data.draw(texts)

    edit = buffer.replace(start, end, inserted)

    first, last = offset_of(text, start), offset_of(text, end)
    assert apply_edit(text, edit) == buffer.text
    assert edit.at + edit.deleted == last
    # The edit leaves out the start that the old and the new text have in common.
    assert not edit.inserted or not text[edit.at : last].startswith(edit.inserted[0])
    assert buffer.text == text[:first] + inserted + text[last:]
    assert TextDocument(buffer.text)._lines == buffer._lines


@given(texts, texts)
def test_replacing_all_text_gives_the_difference_as_an_edit(text: str, other: str) -> None:
    edit = TextDocument(text).replace_all(other)

    assert apply_edit(text, edit) == other


@given(texts, st.data())
def test_an_edit_names_the_whole_lines_that_it_changes(text: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, len(text)))
    buffer = TextDocument(text)
    lines = list(buffer._lines)

    change = buffer.replace(
        position_of(text, first), position_of(text, last), data.draw(texts)
    ).lines
    end = change.start_line + len(change.old_lines)

    assert tuple(lines[change.start_line : end]) == change.old_lines
    lines[change.start_line : end] = change.new_lines
    assert lines == buffer._lines


@given(texts, texts)
def test_replacing_all_text_names_the_lines_that_differ(text: str, other: str) -> None:
    buffer = TextDocument(text)
    lines = list(buffer._lines)

    change = buffer.replace_all(other).lines
    lines[change.start_line : change.start_line + len(change.old_lines)] = change.new_lines

    assert lines == buffer._lines
    # The first line that the change names differs. A change without old lines only inserts lines,
    # or changes nothing if both texts are equal.
    assert change.old_lines[:1] != change.new_lines[:1] or not change.old_lines


def test_replacing_all_text_for_one_typed_character_gives_one_insertion() -> None:
    assert TextDocument("one\ntwo\n").replace_all("one\ntwo!\n") == TextEdit(7, 0, "!")


def test_replacing_a_word_by_a_longer_one_inserts_its_end() -> None:
    edit = TextDocument("x = mo").replace(Position(0, 4), Position(0, 6), "mode")

    assert edit == TextEdit(6, 0, "de")


@given(texts, st.data())
def test_text_before_and_after_the_cursor_make_up_the_text(text: str, data: st.DataObject) -> None:
    at = position_of(text, data.draw(st.integers(0, len(text))))
    buffer = TextDocument(text)

    assert buffer.text_before(at, max_chars=99) + buffer.text_after(at, max_chars=99) == text
    assert len(buffer.text_before(at, max_chars=99)) == buffer.to_offset(at)


def test_a_long_text_is_cut_at_whole_lines() -> None:
    buffer = TextDocument("one\ntwo\nthree\nfour\nfive\n")

    assert buffer.text_before(Position(2, 3), max_chars=8) == "two\nthr"
    assert buffer.text_after(Position(2, 3), max_chars=8) == "ee\nfour\n"


def test_a_line_that_is_too_long_is_cut_near_the_cursor() -> None:
    buffer = TextDocument("abcdefgh")

    assert buffer.text_before(Position(0, 6), max_chars=3) == "def"
    assert buffer.text_after(Position(0, 2), max_chars=3) == "cde"


def test_positions_count_utf_16_code_units() -> None:
    buffer = TextDocument("a😀b中c\n")

    offsets = [buffer.to_offset(Position(0, units)) for units in (0, 1, 3, 4, 5, 6)]
    assert offsets == [0, 1, 2, 3, 4, 5]
    assert buffer.to_offset(Position(0, 2)) == 1, (
        "a position within a surrogate pair counts as before it"
    )
    assert utf16_length("a😀b") == 4
    assert chars_from_utf16("😀😀", 99) == 2


@pytest.mark.parametrize(
    ("position", "offset"),
    [(Position(9, 0), len("ab\r\ncd")), (Position(0, 99), len("ab")), (Position(-1, 5), 0)],
    ids=["below", "right", "above"],
)
def test_a_position_outside_the_text_is_clamped(position: Position, offset: int) -> None:
    assert TextDocument("ab\r\ncd").to_offset(position) == offset


def test_form_feeds_and_similar_characters_end_no_line() -> None:
    buffer = TextDocument("a\x0cb\u2028c\x85d\ne")

    assert buffer.to_offset(Position(1, 0)) == len("a\x0cb\u2028c\x85d\n")


def test_a_carriage_return_and_a_line_feed_that_become_adjacent_end_one_line() -> None:
    buffer = TextDocument("a\r")
    buffer.replace(Position(1, 0), Position(1, 0), "\nb")

    assert buffer.text == "a\r\nb"
    assert buffer.to_offset(Position(1, 0)) == len("a\r\n")


def _order(position: Position) -> tuple[int, int]:
    return position.line, position.units
