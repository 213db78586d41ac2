"""A file is split at the cursor, and its language is detected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.client.complete_cli import CursorOutOfRange, CursorSplit, find_language, split_at_cursor

TEXT = "abc\nde\n"


@pytest.mark.parametrize(
    ("line", "column", "expected"),
    [
        (1, 1, CursorSplit("", "abc\nde\n")),
        (1, 2, CursorSplit("a", "bc\nde\n")),
        (1, 4, CursorSplit("abc", "\nde\n")),
        (2, 1, CursorSplit("abc\n", "de\n")),
        (2, 3, CursorSplit("abc\nde", "\n")),
        (3, 1, CursorSplit("abc\nde\n", "")),
    ],
)
def test_lines_and_columns_count_from_one(line: int, column: int, expected: CursorSplit) -> None:
    assert split_at_cursor(TEXT, line=line, column=column) == expected


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        (0, 1, "no line 0: the file has 3"),
        (4, 1, "no line 4: the file has 3"),
        (-1, 1, "no line -1"),
        (1, 0, "no column 0: line 1 ends at 4"),
        (1, 5, "no column 5: line 1 ends at 4"),
        (3, 2, "no column 2: line 3 ends at 1"),
    ],
)
def test_the_error_for_a_cursor_outside_the_file_names_the_last_position(
    line: int, column: int, message: str
) -> None:
    with pytest.raises(CursorOutOfRange, match=message):
        split_at_cursor(TEXT, line=line, column=column)


def test_an_empty_file_has_one_position() -> None:
    assert split_at_cursor("", line=1, column=1) == CursorSplit("", "")


@given(st.text(alphabet="ab\n世🙂\r\t"), st.data())
def test_prefix_and_suffix_make_up_the_file(text: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    line = data.draw(st.integers(1, len(lines)))
    column = data.draw(st.integers(1, len(lines[line - 1]) + 1))

    split = split_at_cursor(text, line=line, column=column)

    assert split.prefix + split.suffix == text
    assert split.prefix.count("\n") == line - 1


@pytest.mark.parametrize(
    ("path", "language"),
    [("a.py", "python"), ("src/A.PY", "python"), ("a.tar.rs", "rust"), ("Makefile", ""), ("a", "")],
)
def test_the_language_is_detected_by_file_name(path: str, language: str) -> None:
    assert find_language(path) == language
