"""`manage.py evaluate` with a real engine."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stack.commands import manage
from tests.stack.running import Stack

pytestmark = pytest.mark.engine
REPOSITORY = Path(__file__).parent  # stands for the operator's code
# A task of an exam: a model completes the code, and tests decide whether it is right.
EXAM_TASK = {
    "task_id": "SingleLineInfilling/1",
    "entry_point": "double",
    "prompt": "def double(x):\n    # The",  # any end of the comment passes the test
    "suffix": "\n    return 2 * x\n",
    "canonical_solution": " double.",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}


@pytest.mark.deep  # generates 18 completions
def test_two_layouts_are_compared_on_the_operators_code(stack: Stack) -> None:
    # `psm` is a layout of the prompt: prefix, suffix, then the text to generate ("middle").
    options = ("--pool", "demo-fast", "--pool", "demo-fast:psm", "--tasks", "9")

    report = _evaluate(stack, *options, "--repository", str(REPOSITORY))

    first, second = report["pools"]
    assert (first["pool"], second["pool"]) == ("demo-fast", "demo-fast:psm")
    assert first["num_tasks"] == second["num_tasks"] == 9
    assert first["num_errors"] == 0
    assert set(first["by_kind"]) == {"single_line", "multi_line", "random_span"}
    assert {"exact_match", "edit_similarity", "syntax_valid"} == set(report["difference"])


def test_pass_at_1_counts_no_task_whose_tests_fail(stack: Stack, tmp_path: Path) -> None:
    failing = EXAM_TASK | {
        "task_id": "SingleLineInfilling/2",
        "test": "def check(_):\n    assert 0\n",
    }
    exam = tmp_path / "exam.jsonl"
    exam.write_text(f"{json.dumps(EXAM_TASK)}\n{json.dumps(failing)}\n")

    report = _evaluate(stack, "--pool", "demo-quality", "--suite", str(exam))

    assert report["suite"] == "exam.jsonl"
    score = report["pools"][0]["scores"]["pass_at_1"]
    assert score["num_tasks"] == 2
    assert score["value"] == 0.5  # the second task fails with any completion


def test_the_error_names_an_unknown_pool(stack: Stack) -> None:
    process = manage("evaluate", "--pool", "none", environment=stack.environment)

    assert process.returncode == 2
    assert "there is no pool 'none'" in process.stderr
    assert "Traceback" not in process.stderr


def _evaluate(stack: Stack, *options: str) -> Any:
    process = manage("evaluate", *options, environment=stack.environment)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)
