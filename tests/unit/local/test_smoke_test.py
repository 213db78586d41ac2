"""The cursor position at which the smoke test of `make up` requests a completion."""

from caret.local.up import BEFORE_CURSOR, EXAMPLE, find_cursor


def test_the_cursor_is_directly_after_the_text() -> None:
    assert find_cursor("a\nbc = \n", before_cursor="bc = ") == (2, 6)


def test_the_cursor_in_the_example_is_at_the_end_of_its_line() -> None:
    line, column = find_cursor(EXAMPLE.read_text(), before_cursor=BEFORE_CURSOR)

    assert len(EXAMPLE.read_text().splitlines()[line - 1]) == column - 1
