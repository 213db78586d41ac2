"""The report of an evaluation: scores by language, pattern and kind, and differences of two pools.

platform/docs/evaluation.md explains the scores.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import quantiles
from typing import Any, Final

from inference.evaluation.request_completions import TaskCompletion
from inference.evaluation.sandbox import Verdict
from inference.evaluation.scores import (
    Estimate,
    edit_similarity,
    is_exact_match,
    is_syntax_valid,
    mean_of,
    share_of,
)
from inference.evaluation.task import Task

_SHARES: Final = ("exact_match", "syntax_valid", "pass_at_1")  # scores that are shares of tasks
_DIGITS: Final = 4  # after the decimal point


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A judged completion. None: the score does not apply to the task."""

    completion: TaskCompletion
    exact_match: bool
    edit_similarity: float  # from 0 to 1
    syntax_valid: bool | None
    pass_at_1: bool | None
    verdict: Verdict | None = None  # None: the task has no test

    @property
    def task(self) -> Task:
        return self.completion.task


def judge(completion: TaskCompletion, verdict: Verdict | None) -> TaskResult:
    """Return the scores. `verdict` is the result of the task's test; None: the task has no test."""
    task, text = completion.task, completion.text
    return TaskResult(
        completion=completion,
        exact_match=is_exact_match(task, text),
        edit_similarity=edit_similarity(task, text),
        syntax_valid=is_syntax_valid(task, text),
        pass_at_1=None if verdict is None else verdict is Verdict.PASSED,
        verdict=verdict,
    )


def summarize(results: Sequence[TaskResult]) -> dict[str, Any]:
    """Return the scores and latencies of all tasks, and the scores of each group of tasks."""
    groups: Mapping[str, Callable[[Task], str]] = {
        "by_kind": lambda task: task.kind,
        "by_language": lambda task: task.language,
        "by_pattern": lambda task: task.pattern,
    }
    return {
        "num_tasks": len(results),
        "num_errors": sum(bool(result.completion.error) for result in results),
        "num_empty": sum(not result.completion.text for result in results),
        "scores": _compute_scores(results),
        "latency": _summarize_latency(results),
        **{
            name: {
                group: _compute_scores(members)
                for group, members in _group(results, get_group).items()
            }
            for name, get_group in groups.items()
        },
    }


def compare(first: Sequence[TaskResult], second: Sequence[TaskResult]) -> dict[str, Any]:
    """Return the mean difference of each score: second pool minus first pool, task by task.

    A difference is significant if its interval does not contain zero. Tasks without the score are
    left out, and so are scores with fewer than two tasks.
    """
    differences = {}
    for name in (*_SHARES, "edit_similarity"):
        pairs = ((getattr(a, name), getattr(b, name)) for a, b in zip(first, second, strict=True))
        values = [float(b) - float(a) for a, b in pairs if a is not None and b is not None]
        if len(values) > 1:
            estimate = mean_of(values)
            is_significant = estimate.low > 0 or estimate.high < 0
            differences[name] = _round_estimate(estimate) | {"is_significant": is_significant}
    return differences


def _compute_scores(results: Sequence[TaskResult]) -> dict[str, Any]:
    similarity = mean_of([result.edit_similarity for result in results])
    # The interval of a mean is approximate, and may exceed the possible values.
    clamped = replace(similarity, low=max(0.0, similarity.low), high=min(1.0, similarity.high))
    scores = {"edit_similarity": _round_estimate(clamped)}
    for name in _SHARES:
        values = [getattr(result, name) for result in results]
        outcomes = [value for value in values if value is not None]
        if outcomes:
            scores[name] = _round_estimate(share_of(outcomes))
    return scores


def _group(
    results: Iterable[TaskResult], get_group: Callable[[Task], str]
) -> dict[str, list[TaskResult]]:
    groups: dict[str, list[TaskResult]] = {}
    for result in results:
        groups.setdefault(str(get_group(result.task)), []).append(result)
    return dict(sorted(groups.items()))


def _summarize_latency(results: Sequence[TaskResult]) -> dict[str, Any]:
    completions = [result.completion for result in results if not result.completion.error]
    first_text_ms = [
        completion.first_text_ms
        for completion in completions
        if completion.first_text_ms is not None
    ]
    return {
        "first_text_ms": _compute_percentiles(first_text_ms),
        "total_ms": _compute_percentiles([completion.total_ms for completion in completions]),
    }


def _compute_percentiles(values: Sequence[float]) -> dict[str, float] | None:
    """Return the percentiles 50 and 95; None: there are fewer than two values."""
    if len(values) < 2:
        return None
    cuts = quantiles(values, n=100, method="inclusive")
    return {name: round(cuts[rank - 1], 1) for name, rank in (("p50", 50), ("p95", 95))}


def _round_estimate(estimate: Estimate) -> dict[str, Any]:
    """Return the rounded fields of the estimate for JSON.

    The interval of a single task becomes None, because one task gives no useful interval.
    """
    fields = asdict(estimate)
    if estimate.num_tasks == 1:
        fields["low"] = fields["high"] = None
    return {
        name: round(value, _DIGITS) if isinstance(value, float) else value
        for name, value in fields.items()
    }
