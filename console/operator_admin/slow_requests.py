"""The slowest completions of the last hour that missed their latency target, with their stages.

The stages of a completion are drawn as a waterfall: one bar for each stage, on a common time axis.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET

from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from caret.foundation.clock import from_unix_ms
from console.layout.lists.csv_response import csv_response
from console.layout.lists.pagination import wants_csv
from console.operator_admin.site import operator_required, render_operator_page
from console.texts.labels import label_of
from console.usage_filters.request_labels import STAGES
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.scraping.slow_requests import SlowRequest, list_slow_requests
from tenants.usage.requests.finding import Finding
from tenants.usage.requests.latency_explanation import LatencyStage

WIDTH: Final = 1_000.0  # of a waterfall, in SVG units
_MIN_BAR_WIDTH: Final = 4.0  # in SVG units; keeps very short stages visible


@dataclass(frozen=True, slots=True)
class StageBar:
    stage: str  # name in the reader's language
    x: float  # in SVG units
    width: float  # in SVG units
    duration_ms: float
    budget_ms: float | None  # None: the stage has no budget
    is_over: bool  # the stage took longer than its budget
    is_interrupted: bool  # the completion ended in this stage


@dataclass(frozen=True, slots=True)
class SlowRow:
    request_id: str
    tenant_id: str
    tenant_url: str
    at: datetime
    mode: Mode
    pool: str
    replica: str
    finish_reason: FinishReason
    waited_ms: float  # until the first token, or until the request ended without one
    target_ms: float  # for the first token
    target_multiple: float  # waited_ms / target_ms
    prompt_tokens: int
    cached_tokens: int | None  # None: the engine did not report them
    generated_tokens: int
    # Other requests that the gateway had in flight at the replica. None: unknown.
    num_in_flight_at_replica: int | None
    total_ms: float  # the duration of the waterfall
    target_x: float  # position of the target in the waterfall, in SVG units
    bars: list[StageBar]
    main_finding: Finding  # the most important one
    other_findings: tuple[Finding, ...]


@require_GET
@operator_required
def slow(request: HttpRequest, operator: OperatorView) -> HttpResponse:
    slow_requests = list_slow_requests()
    mode, pool = request.GET.get("mode", ""), request.GET.get("pool", "")  # "": all
    rows = [
        _to_row(slow_request)
        for slow_request in slow_requests.requests
        if mode in ("", slow_request.record.mode) and pool in ("", slow_request.record.pool)
    ]
    is_sorted_by_time = request.GET.get("sort") == "time"  # by default, the slowest come first
    if is_sorted_by_time:
        rows.sort(key=lambda row: row.at, reverse=True)
    if wants_csv(request):
        return _csv_response(rows, num_unreachable=slow_requests.num_unreachable)
    context = {
        "title": gettext_lazy("Slow requests"),
        "rows": rows,
        "num_unreachable": slow_requests.num_unreachable,
        "num_all": len(slow_requests.requests),
        "modes": _filter_options(Mode, mode),
        "pools": _filter_options(
            sorted({slow_request.record.pool for slow_request in slow_requests.requests}), pool
        ),
        "is_sorted_by_time": is_sorted_by_time,
        "file_url": f"{request.path}?{urlencode({**request.GET.dict(), 'as': 'csv'})}",
    }
    return render_operator_page(request, "slow_requests.html", context)


def _csv_response(rows: list[SlowRow], *, num_unreachable: int) -> HttpResponse:
    """Return the rows as CSV. The stages are left out, because requests have different stages."""
    header = (
        *("request_id", "tenant_id", "occurred_at", "mode", "pool", "replica", "finish_reason"),
        *("first_token_ms", "target_ms", "total_ms"),
        *("prompt_tokens", "cached_tokens", "generated_tokens", "in_flight_at_replica", "finding"),
    )
    lines = [
        (
            *(
                row.request_id,
                row.tenant_id,
                row.at,
                row.mode,
                row.pool,
                row.replica,
                row.finish_reason,
            ),
            *(row.waited_ms, row.target_ms, row.total_ms),
            *(
                row.prompt_tokens,
                row.cached_tokens,
                row.generated_tokens,
                row.num_in_flight_at_replica,
            ),
            row.main_finding,
        )
        for row in rows
    ]
    return csv_response("slow-requests", header, lines, notes=_csv_notes(num_unreachable))


def _csv_notes(num_unreachable: int) -> list[str]:
    if not num_unreachable:
        return []
    text = ngettext(
        "One gateway does not respond. Its slow requests are missing here.",
        "%(n)s gateways do not respond. Their slow requests are missing here.",
        num_unreachable,
    )
    return [text % {"n": num_unreachable}]


@dataclass(frozen=True, slots=True)
class FilterOption:
    value: str
    name: object
    is_selected: bool


def _filter_options(values: Iterable[str], selected: str) -> list[FilterOption]:
    return [FilterOption(value, label_of(value), value == selected) for value in values if value]


def _to_row(slow_request: SlowRequest) -> SlowRow:
    record = slow_request.record
    total_ms = max(record.total_ms, slow_request.waited_ms, 0.001)  # never 0, as it is a divisor
    return SlowRow(
        request_id=record.request_id,
        tenant_id=record.tenant_id,
        tenant_url=reverse("operators:tenant", args=[record.tenant_id]),
        at=from_unix_ms(record.occurred_at_ms),
        mode=record.mode,
        pool=record.pool,
        replica=record.replica,
        finish_reason=record.finish_reason,
        waited_ms=slow_request.waited_ms,
        target_ms=slow_request.explanation.target_ms,
        target_multiple=slow_request.target_multiple,
        prompt_tokens=record.prompt_tokens,
        cached_tokens=record.cached_tokens,
        generated_tokens=record.generated_tokens,
        num_in_flight_at_replica=record.num_in_flight_at_replica,
        total_ms=total_ms,
        target_x=min(WIDTH, slow_request.explanation.target_ms / total_ms * WIDTH),
        bars=[_to_stage_bar(stage, total_ms) for stage in slow_request.explanation.stages],
        main_finding=slow_request.explanation.findings[0],  # there is always at least one
        other_findings=slow_request.explanation.findings[1:],
    )


def _to_stage_bar(stage: LatencyStage, total_ms: float) -> StageBar:
    width = max(_MIN_BAR_WIDTH, stage.duration_ms / total_ms * WIDTH)
    return StageBar(
        stage=str(STAGES.get(stage.name, stage.name)),
        x=min(WIDTH - _MIN_BAR_WIDTH, stage.start_ms / total_ms * WIDTH),
        width=min(width, WIDTH),
        duration_ms=stage.duration_ms,
        budget_ms=stage.budget_ms,
        is_over=stage.is_over,
        is_interrupted=stage.is_interrupted,
    )
