"""No text crashes or blocks the process that parses it."""

import subprocess
import sys
import tracemalloc
from contextlib import suppress

import pytest

from caret.foundation.parsing.grammars import Grammar
from caret.foundation.parsing.parse import MAX_YAML_COLUMNS, ParseAbandoned, ParseBudget, parse
from tests.fakes.clock import FakeClock

# Each overflows the indentation stack of the YAML parser.
_NESTED = "".join(" " * column + "a:\n" for column in range(300))
DEEP = ("- " * 254, "? " * 300, ": " * 300, "- ? " * 200, "\t- " * 300, _NESTED)

# Parses random texts of YAML's special characters: some repeat a piece in one line, others in lines
# with growing indentation.
FUZZ = """
import random
from caret.foundation.parsing.grammars import Grammar
from caret.foundation.parsing.parse import ParseAbandoned, ParseBudget, parse

pieces = ["- ", "? ", ": ", "a: ", "a", " ", "  ", "\\n", "\\r", "\\t", "\\0", "[", "}", '"', "'"]
pieces += ["|\\n", "&a ", "!t ", "---\\n", "#", ': "\\n', '"\\n":\\n', "\\n - ", ", "]
chance = random.Random(7)
for _ in range(250):
    piece = "".join(chance.choices(pieces, k=chance.randint(1, 6)))
    width = chance.randint(1, 400)
    lines = (" " * (n % width if chance.random() < 0.9 else 0) + piece for n in range(400))
    for text in (piece * 300, "\\n".join(lines)):
        try:
            parse(Grammar.YAML, text[:8_000].encode(), ParseBudget(total_s=1.0))
        except ParseAbandoned:
            pass
"""


def frozen_budget() -> ParseBudget:
    """Return a budget whose clock does not advance."""
    return ParseBudget(total_s=1.0, now_s=FakeClock().monotonic_s)


@pytest.mark.parametrize("text", DEEP)
def test_yaml_too_deep_for_its_parser_is_rejected(text: str) -> None:
    with pytest.raises(ParseAbandoned):
        parse(Grammar.YAML, text.encode(), frozen_budget())


def test_ordinary_nested_yaml_is_parsed() -> None:
    text = "".join("  " * depth + f"key{depth}:\n" for depth in range(MAX_YAML_COLUMNS - 1))

    assert not parse(Grammar.YAML, text.encode(), frozen_budget()).root_node.has_error


def test_random_yaml_does_not_crash_the_process() -> None:
    child = subprocess.run([sys.executable, "-c", FUZZ], timeout=120, check=False)

    assert child.returncode == 0


# Pieces whose repetition, up to 8,000 characters, has blocked a parser for seconds.
BOMBS = (
    (Grammar.C, "a=>"),
    (Grammar.JAVA, "a=>"),
    (Grammar.CSHARP, "<a "),
)


@pytest.mark.parametrize(("grammar", "piece"), BOMBS)
def test_the_steps_for_each_byte_are_limited(grammar: Grammar, piece: str) -> None:
    with pytest.raises(ParseAbandoned):
        parse(grammar, (piece * 8_000)[:8_000].encode(), frozen_budget())


def test_a_slow_parse_is_abandoned() -> None:
    clock = FakeClock()
    budget = ParseBudget(total_s=1.0, each_s=0.01, now_s=lambda: _advance_and_read(clock, 0.004))

    with pytest.raises(ParseAbandoned):
        parse(Grammar.PYTHON, b"a = 1\n" * 200, budget)

    assert budget.spent_s < 0.03


def test_nothing_is_parsed_after_the_total_time_is_spent() -> None:
    budget = ParseBudget(total_s=0.03, now_s=frozen_budget().now_s, spent_s=0.03)

    with pytest.raises(ParseAbandoned):
        parse(Grammar.PYTHON, b"a = 1\n", budget)


def test_a_text_after_an_abandoned_one_is_parsed_normally() -> None:
    with pytest.raises(ParseAbandoned):
        parse(Grammar.C, b"a=>" * 2_000, frozen_budget())

    assert not parse(Grammar.C, b"int a;\n", frozen_budget()).root_node.has_error


def test_null_bytes_are_read_as_spaces() -> None:
    tree = parse(Grammar.BASH, b"echo a\0b\n", frozen_budget())

    assert not tree.root_node.has_error


def _advance_and_read(clock: FakeClock, seconds: float) -> float:
    """Let these seconds pass, and return the time of the clock."""
    clock.pass_s(seconds)
    return clock.monotonic_s()


@pytest.mark.parametrize("text", [b"x = 1\n" * 1_000, b"(" * 6_000], ids=["parsed", "aborted"])
def test_parsing_leaks_no_memory(text: bytes) -> None:
    def parse_often() -> int:
        for number in range(100):
            with suppress(ParseAbandoned):
                parse(Grammar.PYTHON, b"# %d\n" % number + text, ParseBudget(total_s=10.0))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = parse_often()
        after = parse_often()
    finally:
        tracemalloc.stop()

    assert after - before < 10 * len(text)
