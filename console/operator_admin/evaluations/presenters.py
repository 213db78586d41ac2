"""Presentation of evaluations: scores with their intervals, and the difference of two pools."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.usage_filters.display_names import display_name
from console.usage_filters.number_format import format_number, format_share
from tenants.fleet.evaluations import (
    EvaluationReport,
    EvaluationView,
    Percentiles,
    PoolReport,
    Score,
    ScoreDifference,
    ScoresByGroup,
)

INFILLING: Final = "infilling"  # the suite of tasks from the code of a repository
# Titles of scores by name. Scores without a title, from a newer release, are shown after these.
_SCORES: Final[Mapping[str, str | Promise]] = {
    "exact_match": _("Exact match"),
    "edit_similarity": _("Edit similarity"),
    "syntax_valid": _("Valid syntax"),
    "pass_at_1": _("pass@1"),
}
_KINDS: Final[Mapping[str, Promise]] = {
    "single_line": _("Single line"),
    "multi_line": _("Several lines"),
    "random_span": _("Random span"),
}
_PATTERNS: Final[Mapping[str, Promise]] = {
    "tests": _("Tests"),
    "comments": _("Comments"),
    "imports": _("Imports"),
    "conditions": _("Conditions"),
    "call_arguments": _("Call arguments"),
    "other": _("Other code"),
}


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    id: UUID
    title: str
    created_at: datetime
    suite: str
    num_tasks: int
    pools: list[tuple[str, str]]  # name of the pool, and its share of exact matches as text


@dataclass(frozen=True, slots=True)
class PoolFacts:
    name: str
    model: str
    num_tasks: int
    num_empty: int  # tasks whose completion has no text
    num_errors: int  # tasks that failed
    # Latencies in milliseconds. None: fewer than two tasks were measured.
    first_text: Percentiles | None
    total: Percentiles | None


@dataclass(frozen=True, slots=True)
class ScoreCell:
    value: str  # as text
    interval: str  # 95% interval as text; "": a single task has none


@dataclass(frozen=True, slots=True)
class ScoreLine:
    title: str
    cells: list[ScoreCell | None]  # of each pool; None: the pool does not have this score
    difference: str  # second pool minus first pool; "": the report has none for this score
    kind: str  # kind of the badge with the verdict: off, good or bad
    verdict: str  # on the second pool; "": there is no difference


@dataclass(frozen=True, slots=True)
class GroupTable:
    title: str
    scores: list[str]  # titles of the columns
    lines: list["GroupLine"]


@dataclass(frozen=True, slots=True)
class GroupLine:
    name: str
    num_tasks: int
    columns: list[list[ScoreCell | None]]  # for each score, the cells of the pools


def build_list_row(evaluation: EvaluationView) -> EvaluationRow:
    report = evaluation.report
    return EvaluationRow(
        id=evaluation.id,
        title=evaluation.title,
        created_at=evaluation.created_at,
        suite=suite_name(report),
        num_tasks=report.pools[0].num_tasks,  # all pools have the same tasks
        pools=[(pool.pool, _exact_match(pool)) for pool in report.pools],
    )


def suite_name(report: EvaluationReport) -> str:
    """Return the source of the tasks: a repository, or the name of a file without its folder."""
    if report.suite == INFILLING:
        return gettext("Code from a repository")
    return report.suite.rsplit("/", 1)[-1]


def build_pools(report: EvaluationReport) -> list[PoolFacts]:
    return [
        PoolFacts(
            name=pool.pool,
            model=pool.model,
            num_tasks=pool.num_tasks,
            num_empty=pool.num_empty,
            num_errors=pool.num_errors,
            first_text=pool.latency.first_text_ms,
            total=pool.latency.total_ms,
        )
        for pool in report.pools
    ]


def build_scores(report: EvaluationReport) -> list[ScoreLine]:
    names = {name for pool in report.pools for name in pool.scores}
    return [_build_line(report, name) for name in _sort_scores(names)]


def build_groups(report: EvaluationReport) -> list[GroupTable]:
    """Return a table for each grouping that has more than one group."""
    pools = report.pools
    groupings: list[tuple[str, list[ScoresByGroup], Mapping[str, str | Promise] | None]] = [
        (gettext("By kind of task"), [pool.by_kind for pool in pools], dict(_KINDS)),
        (gettext("By language"), [pool.by_language for pool in pools], None),
        (gettext("By pattern"), [pool.by_pattern for pool in pools], dict(_PATTERNS)),
    ]
    return [
        _build_group_table(title, scores_by_pool, names)
        for title, scores_by_pool, names in groupings
        if len(scores_by_pool[0]) > 1
    ]


def _build_group_table(
    title: str, scores_by_pool: list[ScoresByGroup], names: Mapping[str, str | Promise] | None
) -> GroupTable:
    """Return the table of one grouping. `names` has the groups' names; None: they are languages.

    All pools completed the same tasks, so the groups of the first pool are those of all pools.
    """
    groups = scores_by_pool[0]
    scores = _sort_scores({score for group_scores in groups.values() for score in group_scores})
    lines = []
    for group, group_scores in groups.items():
        name = display_name("language", group) if names is None else str(names.get(group, group))
        # A score may apply to some tasks only. The edit similarity applies to all tasks.
        num_tasks = max(score.num_tasks for score in group_scores.values())
        columns = [
            [_build_cell(pool_scores.get(group, {}).get(score)) for pool_scores in scores_by_pool]
            for score in scores
        ]
        lines.append(GroupLine(name, num_tasks, columns))
    return GroupTable(title, [_score_title(score) for score in scores], lines)


def _build_line(report: EvaluationReport, name: str) -> ScoreLine:
    difference = report.difference.get(name)
    kind, verdict = ("off", "") if difference is None else _judge_difference(difference)
    return ScoreLine(
        title=_score_title(name),
        cells=[_build_cell(pool.scores.get(name)) for pool in report.pools],
        difference="" if difference is None else _format_difference(difference),
        kind=kind,
        verdict=verdict,
    )


def _sort_scores(names: Set[str]) -> list[str]:
    """Return the names of scores in the order in which the page shows them."""
    return [*(name for name in _SCORES if name in names), *sorted(names - _SCORES.keys())]


def _score_title(name: str) -> str:
    return str(_SCORES.get(name, name))


def _exact_match(pool: PoolReport) -> str:
    score = pool.scores.get("exact_match")
    return "–" if score is None else format_share(score.value)


def _build_cell(score: Score | None) -> ScoreCell | None:
    if score is None:
        return None
    interval = ""
    if score.low is not None and score.high is not None:
        bounds = {"low": format_share(score.low), "high": format_share(score.high)}
        interval = gettext("%(low)s to %(high)s") % bounds
    return ScoreCell(format_share(score.value), interval)


def _judge_difference(difference: ScoreDifference) -> tuple[str, str]:
    """Return the kind of the badge, and its text: the verdict on the second pool."""
    if not difference.is_significant:
        return "off", gettext("not significant")
    return ("good", gettext("better")) if difference.value > 0 else ("bad", gettext("worse"))


def _format_difference(difference: ScoreDifference) -> str:
    if difference.low is None or difference.high is None:
        return f"{_format_points(difference.value)} {gettext('points')}"
    return gettext("%(value)s %(unit)s (%(low)s to %(high)s)") % {
        "value": _format_points(difference.value),
        "unit": gettext("points"),
        "low": _format_points(difference.low),
        "high": _format_points(difference.high),
    }


def _format_points(share: float) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    sign = "+" if share > 0 else "−" if share < 0 else ""
    return f"{sign}{format_number(abs(share) * 100, 1)}"
