"""The text around the cursor, in the form that a layout needs."""

import pytest

from inference.context.prompt.cursor_text import CursorText
from tests.fakes.cpu_guard import cpu_guard


@pytest.mark.parametrize("rest", [")", '"])', " ) ;", "} ,\r", "`] {", ";"])
def test_what_an_editor_has_closed_is_no_suffix(rest: str) -> None:
    assert CursorText("f(", f"{rest}\nb").strip_closers() == CursorText("f(", "\nb")


@pytest.mark.parametrize("rest", [") x", "a)", ");;", ") ]", "; )"])
def test_a_line_that_says_more_stays(rest: str) -> None:
    around = CursorText("f(", f"{rest}\nb")

    assert around.strip_closers() is around


def test_a_line_of_blanks_without_end_is_looked_at_once() -> None:
    around = CursorText("f(", ")" + " " * 500_000 + "y")

    with cpu_guard():
        assert around.strip_closers() is around
