"""Scores of completions, with their confidence intervals."""

from dataclasses import replace

import pytest

from inference.evaluation.scores import (
    edit_similarity,
    is_exact_match,
    is_syntax_valid,
    mean_of,
    share_of,
)
from tests.fakes.evaluation import TASK


@pytest.mark.parametrize(
    ("text", "is_exact"),
    [
        ("width * height", True),
        ("width * height \n", True),
        (" width * height", False),
        ("", False),
    ],
)
def test_an_exact_match_may_differ_only_in_whitespace_at_its_end(text: str, is_exact: bool) -> None:
    assert is_exact_match(TASK, text) is is_exact


def test_similar_text_has_a_similarity_between_zero_and_one() -> None:
    assert edit_similarity(TASK, TASK.answer) == 1.0
    assert 0.5 < edit_similarity(TASK, "width * hight") < 1.0
    assert edit_similarity(TASK, "") == 0.0


def test_a_completion_may_not_add_syntax_errors() -> None:
    task_with_an_error = replace(TASK, prefix="def (\n" + TASK.prefix)
    task_without_a_grammar = replace(TASK, language="cobol")

    assert is_syntax_valid(TASK, "height + 1") is True
    assert is_syntax_valid(TASK, "area((") is False
    assert is_syntax_valid(task_with_an_error, "height") is True
    assert is_syntax_valid(task_without_a_grammar, "height") is None


def test_an_unmatched_end_tag_of_html_is_a_syntax_error() -> None:
    task = replace(TASK, language="html", prefix="<div>", answer="<p>a</p>", suffix="</div>")

    assert is_syntax_valid(task, "<b>a</b>") is True
    assert is_syntax_valid(task, "a</p>") is False


def test_a_share_has_wilsons_interval() -> None:
    """The figures are those of statsmodels' proportion_confint(method="wilson")."""
    three_of_20, none_of_20 = share_of([True] * 3 + [False] * 17), share_of([False] * 20)

    rounded_interval = (round(three_of_20.low, 4), round(three_of_20.high, 4))
    assert (three_of_20.value, rounded_interval) == (0.15, (0.0524, 0.3604))
    assert (none_of_20.low, round(none_of_20.high, 4)) == (0.0, 0.1611)


def test_a_mean_has_an_interval_around_it() -> None:
    estimate = mean_of([0.0, 1.0, 0.0, 1.0])

    assert estimate.value == 0.5
    # 95% of a normal distribution are within 1.96 standard errors. The standard error is the
    # standard deviation of the four values, 0.57735, divided by the square root of 4.
    assert estimate.high - 0.5 == pytest.approx(1.96 * 0.57735 / 2, abs=1e-4)
    assert estimate.low == 1.0 - estimate.high
