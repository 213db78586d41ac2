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
    assert report["latency"]["total_ms"] == {"p50": 20.0, "p95": 20.0}
    assert report["scores"]["edit_similarity"]["high"] == 1.0  # limited to the highest value
    json.dumps(report, allow_nan=False)


def test_only_tasks_with_tests_count_for_pass_at_1() -> None:
    results = [make_result(RIGHT, Verdict.PASSED), make_result(WRONG, Verdict.TIMED_OUT)]

    assert summarize([*results, make_result(RIGHT)])["scores"]["pass_at_1"]["num_tasks"] == 2
    assert "pass_at_1" not in summarize([make_result(RIGHT)])["scores"]


def test_a_difference_is_significant_if_its_interval_excludes_zero() -> None:
    worse = [make_result(WRONG)] * 30 + [make_result(RIGHT)] * 10
    better = [make_result(RIGHT)] * 40
    a_little = [make_result(RIGHT), *worse[1:]]

    assert compare(worse, better)["exact_match"]["value"] == 0.75
    assert compare(worse, better)["exact_match"]["is_significant"]
    assert not compare(worse, a_little)["exact_match"]["is_significant"]
