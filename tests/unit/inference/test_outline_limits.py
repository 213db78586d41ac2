"""Limits of outlines: the steps of each parse, and the total time of a request's parses."""

import pytest

from caret.foundation.parsing.parse import ParseBudget
from inference.context.sources.outline import outline
from tests.fakes.clock import FakeClock

TWO_FUNCTIONS = "def f(): pass\ndef g(): pass\n"


def frozen_budget() -> ParseBudget:
    """Return a budget whose time is never used up, so that only the limit of each parse applies."""
    return ParseBudget(total_s=1.0, now_s=FakeClock().monotonic_s)


def test_a_file_with_too_many_indents_is_not_parsed_and_has_no_outline() -> None:
    assert outline("a.yaml", "- " * 300 + "\n" + "a: 1\n", frozen_budget()) == ""


def test_a_file_that_parses_too_slowly_has_no_outline() -> None:
    text = "int f(int a);\nint g(int a);\n" + ("a=>" * 50 + "\n") * 50

    assert outline("a.c", text, frozen_budget()) == ""


@pytest.mark.parametrize("bracket", "([{")
def test_a_file_whose_definitions_are_found_too_slowly_has_no_outline(bracket: str) -> None:
    assert outline("a.py", TWO_FUNCTIONS + bracket * 7_000, frozen_budget()) == ""


def test_there_is_no_outline_after_the_total_time_is_spent() -> None:
    budget = frozen_budget()

    before = outline("a.py", TWO_FUNCTIONS, budget)
    budget.spent_s = budget.total_s

    assert (before, outline("a.py", TWO_FUNCTIONS, budget)) == ("def f():\ndef g():\n", "")
