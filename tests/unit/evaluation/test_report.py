"""Reports of evaluations: scores by language and pattern, and the comparison of two pools."""

import json

from inference.evaluation.report import compare, summarize
from inference.evaluation.sandbox import Verdict
from tests.fakes.evaluation import TASK, make_result

RIGHT, WRONG = TASK.answer, "height"


def test_scores_are_grouped_by_language_and_pattern() -> None:
    results = [
        make_result(RIGHT),
        make_result(WRONG),
        make_result(RIGHT, path="tests/test_area.py"),
        make_result("", language="go", path="area.go"),
    ]

    report = summarize(results)

    assert (report["num_tasks"], report["num_empty"]) == (4, 1)
    assert report["scores"]["exact_match"]["value"] == 0.5
    assert report["by_language"]["python"]["exact_match"]["num_tasks"] == 3
    assert report["by_pattern"]["tests"]["exact_match"]["value"] == 1.0
    # Each completion of `make_result` takes 20 ms.
    assert report["latency"]["total_ms"] == {"p50": 20.0, "p95": 20.0}
    # The upper end of the confidence interval is limited to the highest possible score.
    assert report["scores"]["edit_similarity"]["high"] == 1.0
    json.dumps(report, allow_nan=False)  # raises an error for a number that JSON does not have


def test_only_tasks_with_tests_count_for_pass_at_1() -> None:
    tested = [make_result(RIGHT, Verdict.PASSED), make_result(WRONG, Verdict.TIMED_OUT)]
    untested = make_result(RIGHT)

    assert summarize([*tested, untested])["scores"]["pass_at_1"]["num_tasks"] == 2
    assert "pass_at_1" not in summarize([untested])["scores"]


def test_a_difference_is_significant_if_its_interval_excludes_zero() -> None:
    worse = [make_result(WRONG)] * 30 + [make_result(RIGHT)] * 10
    better = [make_result(RIGHT)] * 40
    slightly_better = [make_result(RIGHT), *worse[1:]]

    assert compare(worse, better)["exact_match"]["value"] == 0.75
    assert compare(worse, better)["exact_match"]["is_significant"]
    assert not compare(worse, slightly_better)["exact_match"]["is_significant"]
