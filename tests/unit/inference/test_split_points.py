"""The rules that split a text into lines, after or before line breaks."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.context.tokenization.split_points import AFTER_NEWLINE, BEFORE_NEWLINE, SplitRule

# The same rules as regular expressions: split after a line break that no other line break follows,
# or before a line break that follows a non-blank character.
EXPRESSIONS = {
    "after": (AFTER_NEWLINE, re.compile(r"(?<=\n)(?=[^\r\n])")),
    "before": (BEFORE_NEWLINE, re.compile(r"(?<=\S)(?=\n)")),
}
# Python also counts \x1c and \u2028 as line breaks, but these rules do not.
TEXTS = st.text(alphabet="a. \n\r\t\x1c\u2028", max_size=30)
with_each_expression = pytest.mark.parametrize("name", EXPRESSIONS)


@with_each_expression
@given(text=TEXTS)
def test_lines_are_split_by_the_rule(name: str, text: str) -> None:
    rule, expression = EXPRESSIONS[name]

    assert rule.split(text) == expression.split(text)


@with_each_expression
@given(text=TEXTS)
def test_the_first_and_the_last_line_are_found_without_the_others(name: str, text: str) -> None:
    rule: SplitRule = EXPRESSIONS[name][0]
    lines = rule.split(text)

    assert text[: rule.first_end(text)] == lines[0]
    assert text[rule.last_start(text) :] == lines[-1]
