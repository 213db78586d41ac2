"""Truncation: the position at which a completion ends."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.policy import Mode
from inference.filtering.truncation.brackets import BracketCounter
from inference.filtering.truncation.truncation_context import (
    TruncationContext,
    build_truncation_context,
)
from inference.filtering.truncation.truncator import Truncator
from tests.fakes.cpu_guard import cpu_guard
from tests.fakes.requests import make_request


@dataclass(frozen=True, slots=True)
class Case:
    """A cursor between `prefix` and `suffix`, the engine's text, and the part that is shown."""

    prefix: str
    engine_text: str
    shown_text: str
    suffix: str = ""
    mode: Mode = Mode.BLOCK
    is_single_line: bool = False


def _context(case: Case) -> TruncationContext:
    request = make_request(mode=case.mode, prefix=case.prefix, suffix=case.suffix)
    return build_truncation_context(request, is_single_line=case.is_single_line)


def _truncate(context: TruncationContext, *chunks: str) -> str:
    truncator = Truncator(context)
    return "".join(truncator.feed(chunk) for chunk in chunks) + truncator.finish()


CASES: Final = {
    # a single line
    "a single line": Case("a = ", "b", "b", is_single_line=True),
    "text after the line": Case(
        "a = ",
        "b\nc = d\n",
        "b",
        is_single_line=True,
    ),
    "white space at the end of the line": Case("a = ", "b  \n", "b", is_single_line=True),
    "the line below": Case("a = b", "\nc = d\ne = f\n", "\nc = d", is_single_line=True),
    "an empty line": Case("if a:\n    ", "\n    c = d\n", "", is_single_line=True),
    "the line below, though text follows": Case(
        "f(a", "\nb", "", suffix=" + c)", is_single_line=True
    ),
    "a block that the line opens": Case(
        "def f(", "a):\n    return a\nb = 1", "a):\n    return a", is_single_line=True
    ),
    "a block that the line opens, though the text below has it": Case(
        "def f(", "a):\n    return a", "a):", suffix="\n    return b", is_single_line=True
    ),
    "white space only": Case("a = ", "   ", "", is_single_line=True),
    # blocks by indentation
    "lines of the block": Case("def f():\n    ", "a = 1\n    return a\n", "a = 1\n    return a"),
    "a line that leaves the block": Case(
        "def f():\n    ", "return 1\n\n\ndef g():\n    pass\n", "return 1"
    ),
    "a nested block": Case(
        "def f():\n    ",
        "if a:\n        b()\n    return c\nd()\n",
        "if a:\n        b()\n    return c",
    ),
    "a block that this line opens": Case("def f():", "\n    return 1\ng()\n", "\n    return 1"),
    "a blank line within a block": Case("def f():\n    ", "a()\n\n    b()\nc()", "a()\n\n    b()"),
    "tabs": Case("def f():\n\t", "a()\n\tb()\nc()", "a()\n\tb()"),
    "the top level of a module has no block to leave": Case("", "a = 1\nb = 2", "a = 1\nb = 2"),
    # blocks by braces
    "the closing brace of a function": Case(
        "function f() {", "\n  return 1;\n}\n\nfunction g() {}\n", "\n  return 1;\n}"
    ),
    "a brace that the suffix contains": Case(
        "function f() {\n  ", "a();\n}\n", "a();", suffix="\n}\n"
    ),
    "a brace of an inner block, though the suffix begins with one": Case(
        "function f() {\n  ",
        "if (a) {\n    b();\n  }\n  c();\n}\n",
        "if (a) {\n    b();\n  }\n  c();",
        suffix="\n}\n",
    ),
    "an inner `end`, though the suffix begins with one": Case(
        "def f\n  ", "if a\n    b\n  end\n  c\nend\n", "if a\n    b\n  end\n  c", suffix="\nend\n"
    ),
    "an else after a brace": Case(
        "if (a) {", "\n  b();\n} else {\n  c();\n}\nd();\n", "\n  b();\n} else {\n  c();\n}"
    ),
    # the suffix
    "a repeated first line of the suffix": Case(
        "def f():\n    ", "a = 1\n    return a\n", "a = 1", suffix="\n    return a\n"
    ),
    "a first line that repeats the suffix": Case(
        "def f():\n    ", "return a\n", "", suffix="\n    return a\n"
    ),
    "a line that only begins like the suffix": Case(
        "def f():\n    ",
        "return\n    return ab\n    x",
        "return\n    return ab\n    x",
        suffix="\n    return abc\n",
    ),
    "a beginning of the suffix that leaves the block": Case(
        "def f():\n    ", "a()\nde", "a()", suffix="\n\ndef g():\n"
    ),
    "a whole line that begins the suffix and leaves the block": Case(
        "def f():\n    ", "a()\ng()\nh()", "a()", suffix="\n\ng()  # call\n"
    ),
    "text that continues the cursor's line is not compared with the line below": Case(
        "a = ", "b", "b", suffix="\nb\n", is_single_line=True
    ),
    # the rest of the cursor's line
    "a bracket that already follows": Case(
        "f(", "a, b)", "a, b", suffix=")\n", is_single_line=True
    ),
    "a bracket that already follows, and a space": Case(
        "f(", "a, b) ", "a, b", suffix=")\n", is_single_line=True
    ),
    "several brackets that already follow": Case(
        "f(g[", "a])", "a", suffix="])\n", is_single_line=True
    ),
    "a bracket that the text itself opens": Case(
        "f(", "g(a)", "g(a)", suffix=")\n", is_single_line=True
    ),
    "a bracket that the text opens and one that already follows": Case(
        "f(", "g(a))", "g(a)", suffix=")\n", is_single_line=True
    ),
    "words that already follow": Case(
        "def f(", "a) -> int:", "a", suffix=") -> int:\n", is_single_line=True
    ),
    "a bracket opened lines before": Case(
        "f(", "g(\n        1,\n    )", "g(\n        1,\n    )", suffix=")\n", mode=Mode.FIM
    ),
    "a bracket in the middle of the line": Case(
        "f(", "a) + g(b", "a) + g(b", suffix=")\n", is_single_line=True
    ),
    # repetition
    "a line twice": Case("", "a()\na()\nb()", "a()\na()\nb()"),
    "a line three times": Case("", "a()\na()\na()\na()\nb()", "a()\na()"),
    "a third line that only begins like the two before": Case(
        "", "a()\na()\na() + b\n", "a()\na()\na() + b"
    ),
    "a third line that ends early": Case("", "ab()\nab()\na", "ab()\nab()\na"),
    "a third line at the very end": Case("", "a()\na()\na()", "a()\na()"),
    # A line ends when it has 40 repetitive characters. It is checked at every 16th character.
    "a line that repeats itself": Case("f(a", ", b_c" * 40, (", b_c" * 40)[:48].rstrip()),
    "two alternating lines": Case("", "a()\nb()\n" * 4, "a()\nb()\na()\nb()"),
    # half a character
    "a replacement character": Case("", "a = 'b\ufffdc'\nd", "a = 'b"),
    "an incomplete character at the end": Case("", "a = 'b\ufffd", "a = 'b"),
    # line ends of Windows
    "lines that end with a carriage return": Case(
        "def f():\r\n    ", "a()\r\n    b()\r\nc()\r\n", "a()\r\n    b()"
    ),
    "a suffix whose lines end with a carriage return": Case(
        "def f():\r\n    ", "a()\r\n    b()\r\n", "a()", suffix="\r\n    b()\r\n"
    ),
    # white space
    "nothing": Case("a = ", "", ""),
    "blank lines": Case("def f():\n    ", "\n\n   \n", ""),
    "line breaks at the end": Case("", "a\n\n\n", "a"),
    # modes: a blank line ends an inline completion; the end of the block does not end a fim one
    "a blank line while typing": Case(
        "def f():\n    ", "a()\n\n    b()\n", "a()", mode=Mode.INLINE
    ),
    "a line that leaves the block, in the mode fim": Case(
        "def f():\n    ", "a()\nb()\n", "a()\nb()", mode=Mode.FIM
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_completion_ends_at_the_expected_position(name: str) -> None:
    case = CASES[name]

    assert _truncate(_context(case), case.engine_text) == case.shown_text


@pytest.mark.parametrize("name", CASES)
def test_the_end_is_the_same_if_each_character_arrives_alone(name: str) -> None:
    case = CASES[name]

    assert _truncate(_context(case), *case.engine_text) == case.shown_text


LINES = st.sampled_from(
    [
        *("", " ", "    ", "a()", "    a()", "    return a", "return a", "}", "    }", ")"),
        *("f(a)", "    f(", "    )", "]", "        b[1])", "a() ", "re", "    re", "世()"),
    ]
)
ENGINE_TEXTS = st.lists(LINES, max_size=8).map("\n".join)
SUFFIXES = st.sampled_from(["", "\n", ")\n", ")]\n    }\n", "\n    return a\n", "\n}\n", ": x\nre"])
CONTEXTS = st.builds(
    lambda prefix, suffix, mode, is_single_line: _context(
        Case(prefix, "", "", suffix=suffix, mode=mode, is_single_line=is_single_line)
    ),
    st.sampled_from(["", "    ", "x = f(", "def f():\n    ", "def f():", "  if a {\n\t"]),
    SUFFIXES,
    st.sampled_from(list(Mode)),
    st.booleans(),
)


@given(CONTEXTS, ENGINE_TEXTS, st.lists(st.integers(min_value=0, max_value=80), max_size=10))
def test_chunking_makes_no_difference(
    context: TruncationContext, engine_text: str, cuts: list[int]
) -> None:
    edges = [0, *sorted(min(cut_position, len(engine_text)) for cut_position in cuts)]
    edges.append(len(engine_text))
    chunks = [engine_text[start:end] for start, end in pairwise(edges)]

    assert _truncate(context, *chunks) == _truncate(context, engine_text)


@given(CONTEXTS, ENGINE_TEXTS)
def test_the_shown_text_is_a_beginning_of_the_engine_text(
    context: TruncationContext, engine_text: str
) -> None:
    assert engine_text.startswith(_truncate(context, engine_text))


@given(CONTEXTS, ENGINE_TEXTS, ENGINE_TEXTS)
def test_shown_text_is_never_retracted(
    context: TruncationContext, engine_text: str, later_text: str
) -> None:
    early = Truncator(context).feed(engine_text)

    assert _truncate(context, engine_text + later_text).startswith(early)


@given(CONTEXTS, ENGINE_TEXTS, ENGINE_TEXTS)
def test_no_text_is_shown_after_the_end(
    context: TruncationContext, engine_text: str, later_text: str
) -> None:
    truncator = Truncator(context)
    truncator.feed(engine_text)
    truncator.finish()
    if not truncator.has_ended:  # `finish` does not end a completion whose last line is blank
        return

    shown_text = truncator.feed(later_text) + truncator.finish()

    assert shown_text == ""


@given(CONTEXTS, ENGINE_TEXTS)
def test_shown_text_has_no_trailing_whitespace(
    context: TruncationContext, engine_text: str
) -> None:
    shown_text = _truncate(context, engine_text)

    assert shown_text == shown_text.rstrip()


def test_a_line_is_shown_while_it_grows() -> None:
    truncator = Truncator(_context(Case("a = ", "", "")))

    shown_parts = [truncator.feed(part) for part in ("read", "er.", "x")]

    assert shown_parts == ["read", "er.", "x"]


def test_a_bracket_in_the_first_column_does_not_close_an_indented_line() -> None:
    num_unmatched = BracketCounter("    f(\n", "\n)\n").count_unmatched("x")

    assert num_unmatched == 2  # the opening bracket and the closing one


def test_a_brace_after_a_condition_of_several_lines_belongs_to_its_first_line() -> None:
    count = BracketCounter("f() {\n  if (a(\n        b)) {\n    c()", "\n}\n").count_unmatched

    assert count("\n  }") == 0
    assert count("") == 1


# The text below is longer than the part in which brackets are counted.
FUNCTIONS: Final = "\n\nfunction g() {\n  h();\n}\n" * 200


@pytest.mark.parametrize("prefix", ["class A {\n  f() {\n    ", "function f() {\n  "])
def test_brackets_that_close_far_below_are_not_unmatched(prefix: str) -> None:
    count = BracketCounter(prefix, FUNCTIONS).count_unmatched

    assert count("") == 0
    assert count("if (a) {") == 1


def test_a_blank_line_ends_no_open_block_in_a_long_file() -> None:
    block = "a) {\n  b();\n\n  c();\n}"
    case = Case("function f(", "", "", suffix=FUNCTIONS, mode=Mode.INLINE, is_single_line=True)

    assert _truncate(_context(case), f"{block}\n\nd();\n") == block


def test_a_long_rest_of_the_line_takes_linear_time() -> None:
    truncator = Truncator(_context(Case("a", "", "", suffix="-" * 500_000)))

    with cpu_guard():
        shown_text = "".join(truncator.feed("=" * 64) for _ in range(800))

    assert shown_text == "=" * 800 * 64


def test_a_long_rest_of_the_line_is_not_repeated() -> None:
    rest_of_line = ", ".join(f"name_{n}" for n in range(60)) + ")"
    case = Case("f(", f"a, {rest_of_line}", "a,", suffix=f"{rest_of_line}\n", is_single_line=True)

    assert _truncate(_context(case), *case.engine_text) == case.shown_text
