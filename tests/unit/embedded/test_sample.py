from caret.embedded.sample import BEFORE_CURSOR, EXAMPLE, find_spot


def test_the_spot_is_right_behind_the_text() -> None:
    assert find_spot("a\nbc = \n", before_cursor="bc = ") == (2, 6)


def test_the_example_has_the_spot_once() -> None:
    text = EXAMPLE.read_text()

    assert text.count(BEFORE_CURSOR) == 1
