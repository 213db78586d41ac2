"""The rest of the cursor's line is left out of the suffix if it consists of closers.

Closers are closing brackets and quotes, then at most one separator or `{`. Editors insert them
automatically.
"""

import pytest

from inference.context.prompt.cursor_text import CursorText
from tests.fakes.cpu_guard import cpu_guard


@pytest.mark.parametrize("rest_of_line", [")", '"])', " ) ;", "} ,\r", "`] {", ";"])
def test_closers_after_the_cursor_are_skipped(rest_of_line: str) -> None:
    assert CursorText("f(", f"{rest_of_line}\nb").strip_closers() == CursorText("f(", "\nb")


@pytest.mark.parametrize("rest_of_line", [") x", "a)", ");;", ") ]", "; )"])
def test_any_other_text_after_the_cursor_is_kept(rest_of_line: str) -> None:
    text = CursorText("f(", f"{rest_of_line}\nb")

    assert text.strip_closers() is text


def test_a_long_line_of_spaces_takes_linear_time() -> None:
    text = CursorText("f(", ")" + " " * 500_000 + "y")

    with cpu_guard():
        assert text.strip_closers() is text
