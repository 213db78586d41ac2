"""Constructs that a text has opened but not closed, and the text that closes them."""

import subprocess
import sys
from typing import Final

import pytest

from caret.foundation.parsing.grammars import Grammar
from inference.filtering.open_constructs import find_closing_candidates

# Grammar, text, and the first candidate that closes it ("": there is none).
TEXTS: Final = (
    (Grammar.HTML, "<div class='a'><br><p>", "</p></div>"),
    (Grammar.HTML, "<my-tag><img src='a'/></b><i/>", "</my-tag>"),
    (Grammar.RUBY, "a.each do |b| ", "\nend"),
    (Grammar.RUBY, "a.each do |b| b", ""),
    (Grammar.RUBY, "loop do\n  if a", "\nend\nend"),
    (Grammar.BASH, "while a; do\n  if b", "\nthen\n:\nfi\n\n:\ndone"),
    (Grammar.BASH, "if a; if b", "\nthen\n:\nfi\nthen\n:\nfi"),
)
# Texts as Python expressions, which a child process evaluates. Each text would take minutes if the
# time grew quadratically.
LONG: Final = (
    (Grammar.HTML, "'<' + 'a' * 300_000"),
    (Grammar.TSX, "'<' + 'b-' * 200_000"),
    (Grammar.RUBY, "'do' + ' ' * 300_000 + 'x'"),
    (Grammar.BASH, "'if;' * 100_000 + 'a' * 500_000"),
)


@pytest.mark.parametrize(("grammar", "text", "closing"), TEXTS)
def test_blocks_are_closed_by_their_keywords_and_tags(
    grammar: Grammar, text: str, closing: str
) -> None:
    assert next(iter(find_closing_candidates(grammar, text)), "") == closing


@pytest.mark.parametrize(("grammar", "text"), LONG)
def test_a_long_line_takes_linear_time(grammar: Grammar, text: str) -> None:
    code = f"""
from caret.foundation.parsing.grammars import Grammar
from inference.filtering.open_constructs import find_closing_candidates
assert find_closing_candidates(Grammar({grammar.value!r}), {text}) is not None
"""

    child = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)

    assert child.returncode == 0
