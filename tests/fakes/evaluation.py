"""Tasks for evaluations, and their judged completions."""

from dataclasses import replace
from typing import Any, Final

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
    task = replace(TASK, **changes)
    return judge(TaskCompletion(task, text, first_token_ms=10.0, total_ms=20.0), verdict)
