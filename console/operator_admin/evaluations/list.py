"""The list of stored evaluations, newest first, and the page of one evaluation."""

from typing import Any, Final, NamedTuple
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.lists.pagination import wants_csv
from console.operator_admin.evaluations.presenters import (
    build_groups,
    build_list_row,
    build_pools,
    build_scores,
    suite_name,
)
from console.operator_admin.site import operator_required, render_operator_page
from tenants.base.errors import NotFound
from tenants.base.pagination import Page
from tenants.fleet.evaluations import (
    EvaluationView,
    PoolReport,
    find_evaluation,
    list_evaluations,
)
from tenants.fleet.operators.accounts import OperatorView

_BAD_REQUEST: Final = 400


class _EvaluationCsvRow(NamedTuple):
    evaluation: EvaluationView
    pool_report: PoolReport  # the evaluation's report on one pool


def _find_evaluations(query: ListQuery) -> Page[EvaluationView]:
    return list_evaluations(limit=query.limit, cursor=query.cursor)


def _score_column(name: str, part: str) -> Any:
    """Return the CSV column for a part of the score `name`: its `value`, `low` or `high`."""

    def read(row: _EvaluationCsvRow) -> float | None:
        score = row.pool_report.scores.get(name)
        return None if score is None else getattr(score, part)

    return read


_EVALUATIONS: Final = ListPage(
    template="operators/evaluations/list.html",
    query=_find_evaluations,
    csv=CsvFile(
        "evaluations",
        {
            "id": lambda row: row.evaluation.id,
            "title": lambda row: row.evaluation.title,
            "created_at": lambda row: row.evaluation.created_at,
            "suite": lambda row: row.evaluation.report.suite,
            "pool": lambda row: row.pool_report.pool,
            "model": lambda row: row.pool_report.model,
            "num_tasks": lambda row: row.pool_report.num_tasks,
            **{
                f"{name}{suffix}": _score_column(name, part)
                for name in ("exact_match", "edit_similarity", "syntax_valid", "pass_at_1")
                for suffix, part in (("", "value"), ("_low", "low"), ("_high", "high"))
            },
        },
        split=lambda evaluation: [
            _EvaluationCsvRow(evaluation, pool_report) for pool_report in evaluation.report.pools
        ],
    ),
    shows_errors=True,
)


@require_GET
@operator_required
def evaluations(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    if wants_csv(request):
        return _EVALUATIONS.file(request, None)
    context = _EVALUATIONS.page_context(request, None)
    context |= {
        "title": gettext("Evaluations"),
        "message": context.get("error"),
        "rows": [build_list_row(evaluation) for evaluation in context["rows"]],
    }
    status = _BAD_REQUEST if "error" in context else 200
    return render_operator_page(request, "evaluations/list.html", context, status=status)


@require_GET
@operator_required
def evaluation(request: HttpRequest, operator: OperatorView, evaluation_id: UUID) -> HttpResponse:
    try:
        view = find_evaluation(evaluation_id)
    except NotFound as error:
        raise Http404 from error
    context = {
        "title": view.title,
        "evaluation": view,
        "suite": suite_name(view.report),
        "pools": build_pools(view.report),
        "scores": build_scores(view.report),
        "groups": build_groups(view.report),
        "is_comparison": len(view.report.pools) > 1,
    }
    return render_operator_page(request, "evaluations/detail.html", context)
