"""Reports over REST: usage and quality of a period, in total and by group."""

import datetime
from dataclasses import asdict
from typing import Annotated, Any, Final

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
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
_MAX_PRICE_MICROS: Final = 10**12  # a million units of the currency


class ReportPeriod(RequestSchema):
    """A period of UTC days."""

    start: datetime.date | None = None  # null: the first day of the current month
    end: datetime.date | None = None  # exclusive; null: tomorrow
    group_by: GroupBy | None = None  # null: only the total


class QualityPeriod(ReportPeriod):
    # Prices of a million tokens, in micros of any currency. The metric of the cost of 1,000
    # accepted tokens uses them. Give both prices or neither.
    prompt_price_micros: Annotated[int, Field(ge=0, le=_MAX_PRICE_MICROS)] | None = None
    generated_price_micros: Annotated[int, Field(ge=0, le=_MAX_PRICE_MICROS)] | None = None


class ReportRowResponse(ResponseSchema):
    # Identifies the group: a day, the ID of a team or user, or a name. "": unknown, no team, or the
    # total.
    key: str
    label: str  # the name of the group, for people
    users: int | None  # number of active users; null: suppressed
    counts: dict[str, int] | None  # null: suppressed
    suppressed: str | None  # the reason of the suppression; null: not suppressed


class QualityRowResponse(ReportRowResponse):
    # By name. Null: suppressed. A null value: unknown, for example because its divisor is 0.
    metrics: dict[str, float | None] | None


class ReportResponse(ResponseSchema):
    start: datetime.date
    end: datetime.date  # exclusive
    group_by: GroupBy | None  # null: only the total
    # The report counts all usage before this time that gateways have delivered. Null: nothing was
    # counted yet.
    complete_until: datetime.datetime | None
    generated_at: datetime.datetime
    definition_version: int  # of the definitions of metrics
    min_users: int  # groups with fewer users are suppressed; 1: no group is suppressed
    sources: dict[str, str]  # by count: whether the server observes it or the client reports it


class UsageReportResponse(ReportResponse):
    items: Items[ReportRowResponse]
    total: ReportRowResponse


class MetricDefinitionResponse(ResponseSchema):
    name: str
    definition: str
    source: str  # whether the server observes it or the client reports it
    unit: str  # share (0 to 1) or micros


class QualityReportResponse(ReportResponse):
    items: Items[QualityRowResponse]
    total: QualityRowResponse
    definitions: list[MetricDefinitionResponse]


class ReportSettings(ResponseSchema):
    min_users: int  # groups with fewer users are suppressed in reports


class SetReportSettings(
    RequestSchema,
    json_schema_extra={"example": {"min_users": 5, "reason": "As the works council asks."}},
):
    min_users: Annotated[int, Field(ge=1, le=MAX_MIN_USERS)]  # 1: no group is suppressed
    reason: str  # for the audit log


@router.get(
    "/usage",
    response=UsageReportResponse,
    summary="Report the usage of a period: the tenant's, or only your own.",
    openapi_extra=document_permissions(Permission.READ_USAGE, Permission.READ_OWN_USAGE),
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
    openapi_extra=document_permissions(Permission.READ_QUALITY, Permission.READ_OWN_QUALITY),
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
    summary="Set the number of users that a group in reports must have.",
    openapi_extra=document_permissions(Permission.WRITE_POLICY),
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
    today = now.date()  # in UTC, like `now`
    end = period.end or _next_day(today)
    return ReportQuery(period.start or today.replace(day=1), end, period.group_by)


def _next_day(day: datetime.date) -> datetime.date:
    return day + datetime.timedelta(days=1)


def _token_price_of(period: QualityPeriod) -> TokenPrice | None:
    """Return the prices; None: none are given. Raises InvalidValue if only one is given."""
    prompt, generated = period.prompt_price_micros, period.generated_price_micros
    if prompt is None and generated is None:
        return None
    if prompt is None or generated is None:
        raise InvalidValue("generated_price_micros", "Enter both prices, or neither.")
    return TokenPrice(prompt, generated)


def _report_fields(report: Report, now: datetime.datetime) -> dict[str, Any]:
    return {
        **{name: getattr(report.query, name) for name in ("start", "end", "group_by")},
        "complete_until": report.complete_until,
        "generated_at": now,
        "definition_version": DEFINITION_VERSION,
        "min_users": report.min_users,
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
