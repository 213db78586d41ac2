"""No text kills the process that parses it, or holds it up."""

import subprocess
import sys

import pytest

from caret.foundation.grammars import Grammar
from caret.foundation.parse import MAX_YAML_COLUMNS, Unparsed, parse

# Each overflows the stack of indents of YAML's parser.
_NESTED = "".join(" " * column + "a:\n" for column in range(300))
DEEP = ("- " * 254, "? " * 300, ": " * 300, "- ? " * 200, "\t- " * 300, _NESTED)

# Texts out of few pieces, over and over, and with growing indents: what is not refused is parsed.
FUZZ = """
import random
from caret.foundation.grammars import Grammar
from caret.foundation.parse import Unparsed, parse

pieces = ["- ", "? ", ": ", "a: ", "a", " ", "  ", "\\n", "\\r", "\\t", "\\0", "[", "}", '"', "'"]
pieces += ["|\\n", "&a ", "!t ", "---\\n", "#", ': "\\n', '"\\n":\\n', "\\n - ", ", "]
chance = random.Random(7)
for _ in range(250):
    piece = "".join(chance.choices(pieces, k=chance.randint(1, 6)))
    width = chance.randint(1, 400)
    lines = (" " * (n % width if chance.random() < 0.9 else 0) + piece for n in range(400))
    for text in (piece * 300, "\\n".join(lines)):
        try:
            parse(Grammar.YAML, text[:8_000].encode())
        except Unparsed:
            pass
"""


@pytest.mark.parametrize("text", DEEP)
def test_yaml_that_is_too_deep_for_its_parser_is_refused(text: str) -> None:
    with pytest.raises(Unparsed):
        parse(Grammar.YAML, text.encode())


def test_yaml_that_people_write_is_parsed() -> None:
    text = "".join("  " * depth + f"key{depth}:\n" for depth in range(MAX_YAML_COLUMNS - 1))

    assert not parse(Grammar.YAML, text.encode()).root_node.has_error


def test_no_yaml_kills_the_process() -> None:
    child = subprocess.run([sys.executable, "-c", FUZZ], timeout=120, check=False)

    assert child.returncode == 0
