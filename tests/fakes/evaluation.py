"""A task for evaluations, judged completions of it, and evaluation reports."""

import json
from dataclasses import replace
from typing import Any, Final

from inference.evaluation.cli import make_report
from inference.evaluation.report import TaskResult, judge
from inference.evaluation.request_completions import TaskCompletion
from inference.evaluation.sandbox import Verdict
from inference.evaluation.task import Task, TaskKind

TASK: Final = Task(
    name="area.py:2:single_line",
    kind=TaskKind.SINGLE_LINE,
    path="area.py",
    language="python",
    prefix="def area(width, height):\n    return ",
    suffix="\n",
    answer="width * height",
)


def make_result(text: str, verdict: Verdict | None = None, **changes: Any) -> TaskResult:
    """Judge the text as an answer to TASK with these changes.

    `verdict` is the result of the task's test; None: the task has no test.
    """
    task = replace(TASK, **changes)
    return judge(TaskCompletion(task, text, first_text_ms=10.0, total_ms=20.0), verdict)


def make_report_file(
    *, num_tasks: int = 40, num_right: tuple[int, ...] = (12, 30), **changes: Any
) -> bytes:
    """Return the output of `evaluate` for one or two pools.

    `num_right` has, for each pool, how many of its `num_tasks` answers are right. `changes` replace
    fields of the report.
    """
    names = ["fast", "fast:psm"][: len(num_right)]  # the second with the prompt layout psm
    results = [
        [
            _make_numbered_result(number, is_right=number < num_right_answers)
            for number in range(num_tasks)
        ]
        for num_right_answers in num_right
    ]
    models = ["Qwen2.5-Coder-1.5B"] * len(names)
    report = make_report(names, results, suite="infilling", models=models)
    return json.dumps(report | changes).encode()


def _make_numbered_result(number: int, *, is_right: bool) -> TaskResult:
    kind = list(TaskKind)[number % len(TaskKind)]
    language = ("python", "go")[number % 2]
    return make_result(TASK.answer if is_right else "height", kind=kind, language=language)
