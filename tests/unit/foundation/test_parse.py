"""The parser: no text crashes the process that parses it, or keeps it busy for long."""

import subprocess
import sys
import tracemalloc
from contextlib import suppress

import pytest

from caret.foundation.parsing.grammars import Grammar
from caret.foundation.parsing.parse import MAX_YAML_COLUMNS, ParseAbandoned, ParseBudget, parse
from tests.fakes.clock import FakeClock

# Texts that each overflow the indentation stack of the YAML parser, which crashes the process.
_NESTED = "".join(" " * column + "a:\n" for column in range(300))
DEEP_YAML = ("- " * 254, "? " * 300, ": " * 300, "- ? " * 200, "\t- " * 300, _NESTED)

# A program that parses random texts of YAML's special characters. Some repeat a piece in one line.
# Others repeat it in lines with growing indentation, except that one line in ten has none.
FUZZING_PROGRAM = """
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


@pytest.mark.parametrize("text", DEEP_YAML)
def test_yaml_too_deep_for_its_parser_is_rejected(text: str) -> None:
    with pytest.raises(ParseAbandoned):
        parse(Grammar.YAML, text.encode(), frozen_budget())


def test_yaml_with_fewer_levels_than_the_limit_is_parsed() -> None:
    text = "".join("  " * depth + f"key{depth}:\n" for depth in range(MAX_YAML_COLUMNS - 1))

    assert not parse(Grammar.YAML, text.encode(), frozen_budget()).root_node.has_error


def test_random_yaml_does_not_crash_the_process() -> None:
    program = [sys.executable, "-c", FUZZING_PROGRAM]

    child = subprocess.run(program, timeout=120, check=False)

    assert child.returncode == 0


# Pieces whose repetition, up to 8,000 characters, has blocked a parser for seconds.
SLOW_PIECES = (
    (Grammar.C, "a=>"),
    (Grammar.JAVA, "a=>"),
    (Grammar.CSHARP, "<a "),
)


@pytest.mark.parametrize(("grammar", "piece"), SLOW_PIECES)
def test_the_steps_for_each_byte_are_limited(grammar: Grammar, piece: str) -> None:
    # The clock stands still, so only the limit on steps can stop the parser.
    with pytest.raises(ParseAbandoned):
        parse(grammar, (piece * 8_000)[:8_000].encode(), frozen_budget())


def test_a_slow_parse_is_abandoned() -> None:
    clock = FakeClock()
    # Each time the parser reads the clock, 4 ms have passed. Each parse may take 10 ms.
    budget = ParseBudget(total_s=1.0, each_s=0.01, now_s=lambda: _advance_and_read(clock, 0.004))

    with pytest.raises(ParseAbandoned):
        parse(Grammar.PYTHON, b"a = 1\n" * 200, budget)

    # The parser notices the limit after 12 ms, and the last reading of the clock adds 4 ms.
    assert budget.spent_s < 0.03


def test_nothing_is_parsed_after_the_total_time_is_spent() -> None:
    budget = ParseBudget(total_s=0.03, now_s=FakeClock().monotonic_s, spent_s=0.03)

    with pytest.raises(ParseAbandoned):
        parse(Grammar.PYTHON, b"a = 1\n", budget)


def test_a_text_after_an_abandoned_one_is_parsed_normally() -> None:
    with pytest.raises(ParseAbandoned):
        parse(Grammar.C, b"a=>" * 2_000, frozen_budget())

    assert not parse(Grammar.C, b"int a;\n", frozen_budget()).root_node.has_error


def test_null_bytes_are_read_as_spaces() -> None:
    tree = parse(Grammar.BASH, b"echo a\0b\n", frozen_budget())
    same_tree = parse(Grammar.BASH, b"echo a b\n", frozen_budget())

    assert not tree.root_node.has_error
    assert str(tree.root_node) == str(same_tree.root_node)


def _advance_and_read(clock: FakeClock, seconds: float) -> float:
    """Let these seconds pass, and return the time of the clock."""
    clock.pass_s(seconds)
    return clock.monotonic_s()


@pytest.mark.deep  # long
@pytest.mark.parametrize("text", [b"x = 1\n" * 1_000, b"(" * 6_000], ids=["parsed", "abandoned"])
def test_parsing_leaks_no_memory(text: bytes) -> None:
    def parse_often() -> int:
        """Parse 100 different texts, and return the bytes of memory in use."""
        for number in range(100):
            with suppress(ParseAbandoned):
                parse(Grammar.PYTHON, b"# %d\n" % number + text, ParseBudget(total_s=10.0))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        bytes_before = parse_often()
        bytes_after = parse_often()
    finally:
        tracemalloc.stop()

    # A leak would keep all 100 texts.
    assert bytes_after - bytes_before < 10 * len(text)
