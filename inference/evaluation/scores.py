"""Scores of completions, and their 95% intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from statistics import fmean, stdev
from typing import Final

from caret.foundation.parsing.grammars import grammar_of
from caret.foundation.parsing.parse import ParseAbandoned, ParseBudget, parse
from inference.evaluation.task import Task
from inference.filtering.syntax_check import count_syntax_errors

_Z: Final = 1.96  # quantile of the normal distribution for a 95% interval
_MAX_COMPARED_CHARS: Final = 4_000  # SequenceMatcher may take quadratic time
_PARSING_S: Final = 2.0  # CPU time for parsing a file


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share or a mean over tasks, with the ends of its 95% interval."""

    value: float
    low: float
    high: float
    num_tasks: int


def is_exact_match(task: Task, text: str) -> bool:
    """Return whether the text equals the answer, except for white space at the end."""
    return text.rstrip() == task.answer.rstrip()


def edit_similarity(task: Task, text: str) -> float:
    """Return the share of characters that the text has in common with the answer, from 0 to 1.

    Only the first `_MAX_COMPARED_CHARS` characters are compared, without white space at the end.
    """
    answer, text = task.answer.rstrip()[:_MAX_COMPARED_CHARS], text.rstrip()[:_MAX_COMPARED_CHARS]
    return SequenceMatcher(None, answer, text, autojunk=False).ratio()


def is_syntax_valid(task: Task, text: str) -> bool | None:
    """Return whether the completed file has no more syntax errors than the original file.

    Return None if the language has no grammar or parsing takes too long.
    """
    completed = _count_errors(task, text)
    original = _count_errors(task, task.answer)
    return None if completed is None or original is None else completed <= original


def _count_errors(task: Task, middle: str) -> int | None:
    grammar = grammar_of(task.language)
    if grammar is None:
        return None
    source = (task.prefix + middle + task.suffix).encode("utf-8", "replace")
    try:
        tree = parse(grammar, source, ParseBudget(total_s=_PARSING_S, each_s=_PARSING_S))
    except ParseAbandoned:
        return None
    return count_syntax_errors(tree, grammar)


def share_of(outcomes: Sequence[bool]) -> Estimate:
    """Return the share of true outcomes with Wilson's interval. There must be an outcome."""
    number = len(outcomes)
    share = sum(outcomes) / number
    centre = (share + _Z**2 / (2 * number)) / (1 + _Z**2 / number)
    half_width = (
        _Z
        / (1 + _Z**2 / number)
        * math.sqrt(share * (1 - share) / number + _Z**2 / (4 * number**2))
    )
    return Estimate(share, max(0.0, centre - half_width), min(1.0, centre + half_width), number)


def mean_of(values: Sequence[float]) -> Estimate:
    """Return the mean with its interval by the normal approximation.

    The interval of a single value is infinite. There must be a value.
    """
    mean, number = fmean(values), len(values)
    half_width = _Z * stdev(values) / math.sqrt(number) if number > 1 else math.inf
    return Estimate(mean, mean - half_width, mean + half_width, number)
