"""An outline has a time limit; beyond it there is no outline."""

import pytest

from caret.foundation.parsing.parse import ParseBudget
from inference.context.sources.outline import outline
from tests.fakes.clock import FakeClock

TWO = "def f(): pass\ndef g(): pass\n"


def roomy() -> ParseBudget:
    """Return a budget whose clock does not advance."""
    return ParseBudget(total_s=1.0, now_s=FakeClock().monotonic_s)


def test_a_file_that_cannot_be_parsed_has_no_outline() -> None:
    assert outline("a.yaml", "- " * 300 + "\n" + "a: 1\n", roomy()) == ""


def test_a_file_that_holds_the_parser_up_has_no_outline() -> None:
    text = "int f(int a);\nint g(int a);\n" + ("a=>" * 50 + "\n") * 50

    assert outline("a.c", text, roomy()) == ""


@pytest.mark.parametrize("bracket", "([{")
def test_nor_has_one_that_holds_up_the_search_for_definitions(bracket: str) -> None:
    assert outline("a.py", TWO + bracket * 7_000, roomy()) == ""


def test_when_the_time_is_over_there_is_no_further_outline() -> None:
    allowance = roomy()

    before = outline("a.py", TWO, allowance)
    allowance.spent_s = allowance.total_s

    assert (before, outline("a.py", TWO, allowance)) == ("def f():\ndef g():\n", "")
