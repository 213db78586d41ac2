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
def test_only_blanks_at_the_end_may_differ(text: str, is_exact: bool) -> None:
    assert is_exact_match(TASK, text) is is_exact


def test_similar_text_has_a_similarity_between_zero_and_one() -> None:
    assert edit_similarity(TASK, TASK.answer) == 1.0
    assert 0.5 < edit_similarity(TASK, "width * hight") < 1.0
    assert edit_similarity(TASK, "") == 0.0


def test_a_completion_may_not_add_syntax_errors() -> None:
    assert is_syntax_valid(TASK, "height + 1") is True
    assert is_syntax_valid(TASK, "area((") is False
    # The original file has an error already.
    assert is_syntax_valid(replace(TASK, prefix="def (\n" + TASK.prefix), "height") is True
    assert is_syntax_valid(replace(TASK, language="cobol"), "height") is None


def test_an_unmatched_end_tag_of_html_is_a_syntax_error() -> None:
    task = replace(TASK, language="html", prefix="<div>", answer="<p>a</p>", suffix="</div>")

    assert is_syntax_valid(task, "<b>a</b>") is True
    assert is_syntax_valid(task, "a</p>") is False


def test_a_share_has_wilsons_interval() -> None:
    """The figures are those of statsmodels' proportion_confint(method="wilson")."""
    share, none = share_of([True] * 3 + [False] * 17), share_of([False] * 20)

    assert (share.value, round(share.low, 4), round(share.high, 4)) == (0.15, 0.0524, 0.3604)
    assert (none.low, round(none.high, 4)) == (0.0, 0.1611)


def test_a_mean_has_an_interval_around_it() -> None:
    estimate = mean_of([0.0, 1.0, 0.0, 1.0])

    assert estimate.value == 0.5
    # 1.96 standard errors: the values have the standard deviation 0.57735, and the root of 4 is 2.
    assert estimate.high - 0.5 == pytest.approx(1.96 * 0.57735 / 2, abs=1e-4)
    assert estimate.low == 1.0 - estimate.high
