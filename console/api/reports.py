"""Reports over REST: usage and quality of a period, in groups."""

import datetime
from dataclasses import asdict
from typing import Annotated, Any, Final

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from console.api.authentication import AuthenticatedRequest, actor_of, documents_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.pagination import Items
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.usage.reports.counters import SOURCES, UsageCounters
from tenants.usage.reports.metric_definitions import (
    DEFINITION_VERSION,
    METRICS,
    Metric,
    TokenPrice,
    cost_metric,
)
from tenants.usage.reports.operations import MAX_MIN_USERS, set_min_group_users
from tenants.usage.reports.queries import (
    GroupBy,
    Report,
    ReportKind,
    ReportQuery,
    ReportRow,
    read_report,
)

router = Router(tags=["reports"])
_MAX_PRICE: Final = 10**12  # in micros: a million units of the currency


class ReportPeriod(RequestSchema):
    """A period of UTC days."""

    start: datetime.date | None = None  # null: the first day of the current month
    end: datetime.date | None = None  # exclusive; null: tomorrow
    group_by: GroupBy | None = None  # null: only the total


class QualityPeriod(ReportPeriod):
    # Prices per million tokens in micros of a currency, for the cost of 1,000 accepted tokens.
    prompt_price_micros: Annotated[int, Field(ge=0, le=_MAX_PRICE)] | None = None
    generated_price_micros: Annotated[int, Field(ge=0, le=_MAX_PRICE)] | None = None


class ReportRowResponse(ResponseSchema):
    key: str  # a day, a team's ID, a name; "": unknown, or no team
    label: str
    users: int | None  # number of active users; null: suppressed
    counts: dict[str, int] | None  # null: suppressed
    suppressed: str | None  # the reason; null: not suppressed


class QualityRowResponse(ReportRowResponse):
    metrics: dict[str, float | None] | None  # null: suppressed; null metric: divisor is 0


class ReportResponse(ResponseSchema):
    start: datetime.date
    end: datetime.date
    group_by: GroupBy | None
    # All usage before this time is counted, except what gateways still have to deliver. Null: no
    # usage is complete.
    complete_until: datetime.datetime | None
    generated_at: datetime.datetime
    definition_version: int
    min_users: int  # groups with fewer users are suppressed
    sources: dict[str, str]  # the component that observes each count


class UsageReportResponse(ReportResponse):
    items: Items[ReportRowResponse]
    total: ReportRowResponse


class MetricDefinitionResponse(ResponseSchema):
    name: str
    definition: str
    source: str  # the component that observes it
    unit: str


class QualityReportResponse(ReportResponse):
    items: Items[QualityRowResponse]
    total: QualityRowResponse
    definitions: list[MetricDefinitionResponse]


class ReportSettings(ResponseSchema):
    min_users: int


class SetReportSettings(
    RequestSchema,
    json_schema_extra={"example": {"min_users": 5, "reason": "As the works council asks."}},
):
    min_users: Annotated[int, Field(ge=1, le=MAX_MIN_USERS)]  # 1: no group is suppressed
    reason: str


@router.get(
    "/usage",
    response=UsageReportResponse,
    summary="Report the usage of a period: the tenant's, or only your own.",
    openapi_extra=documents_permissions(Permission.READ_USAGE, Permission.READ_OWN_USAGE),
)
def usage(request: AuthenticatedRequest, period: Query[ReportPeriod]) -> dict[str, Any]:
    now = timezone.now()
    usage_report = read_report(
        actor=actor_of(request), kind=ReportKind.USAGE, query=_to_query(period, now)
    )
    return {
        **_report_fields(usage_report, now),
        "items": [_row_fields(row) for row in usage_report.rows],
        "total": _row_fields(usage_report.total),
    }


@router.get(
    "/quality",
    response=QualityReportResponse,
    summary="Report the quality of a period with its metrics: the tenant's, or only your own.",
    openapi_extra=documents_permissions(Permission.READ_QUALITY, Permission.READ_OWN_QUALITY),
)
def quality(request: AuthenticatedRequest, period: Query[QualityPeriod]) -> dict[str, Any]:
    now = timezone.now()
    metrics = (*METRICS, cost_metric(_token_price_of(period)))
    quality_report = read_report(
        actor=actor_of(request), kind=ReportKind.QUALITY, query=_to_query(period, now)
    )
    return {
        **_report_fields(quality_report, now),
        "items": [_row_fields(row) | _metric_fields(row, metrics) for row in quality_report.rows],
        "total": _row_fields(quality_report.total) | _metric_fields(quality_report.total, metrics),
        "definitions": metrics,
    }


@router.put(
    "/settings",
    response=ReportSettings,
    summary="Set the minimum number of users of groups in reports.",
    openapi_extra=documents_permissions(Permission.WRITE_POLICY),
)
def configure(request: AuthenticatedRequest, body: SetReportSettings) -> dict[str, int]:
    set_min_group_users(
        actor=actor_of(request),
        min_users=body.min_users,
        reason=body.reason,
        now=timezone.now(),
    )
    return {"min_users": body.min_users}


def _to_query(period: ReportPeriod, now: datetime.datetime) -> ReportQuery:
    today = now.date()
    end = period.end or _next_day(today)
    return ReportQuery(period.start or today.replace(day=1), end, period.group_by)


def _next_day(day: datetime.date) -> datetime.date:
    return day + datetime.timedelta(days=1)


def _token_price_of(period: QualityPeriod) -> TokenPrice | None:
    prompt, generated = period.prompt_price_micros, period.generated_price_micros
    if prompt is None and generated is None:
        return None
    if prompt is None or generated is None:
        raise InvalidValue("generated_price_micros", "Enter both prices, or neither.")
    return TokenPrice(prompt, generated)


def _report_fields(usage_report: Report, now: datetime.datetime) -> dict[str, Any]:
    return {
        **{name: getattr(usage_report.query, name) for name in ("start", "end", "group_by")},
        "complete_until": usage_report.complete_until,
        "generated_at": now,
        "definition_version": DEFINITION_VERSION,
        "min_users": usage_report.min_users,
        "sources": SOURCES,
    }


def _row_fields(row: ReportRow) -> dict[str, Any]:
    return {
        "key": row.key,
        "label": row.label,
        "users": row.users,
        "counts": None if row.counts is None else asdict(row.counts),
        "suppressed": row.suppression,
    }


def _metric_fields(row: ReportRow, metrics: tuple[Metric, ...]) -> dict[str, Any]:
    return {"metrics": None if row.counts is None else _metric_values(row.counts, metrics)}


def _metric_values(counts: UsageCounters, metrics: tuple[Metric, ...]) -> dict[str, float | None]:
    return {metric.name: metric.compute(counts) for metric in metrics}
