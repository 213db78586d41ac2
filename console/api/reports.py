"""Reports over REST: usage and quality of a period, by groups."""

import datetime
from dataclasses import asdict
from typing import Annotated, Any, Final

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.base_schema import Answer, Body
from tenants.base.errors import Invalid
from tenants.base.permissions import Permission
from tenants.usage.reports.counters import SOURCES, Counts
from tenants.usage.reports.metric_definitions import (
    DEFINITION_VERSION,
    METRICS,
    Metric,
    Price,
    cost_metric,
)
from tenants.usage.reports.operations import MAX_MIN_USERS, set_min_group_users
from tenants.usage.reports.queries import Asked, GroupBy, Kind, Report, Row, report

router = Router(tags=["reports"])
_MAX_PRICE: Final = 10**12


class Period(Body):
    """Days in UTC."""

    start: datetime.date | None = None  # null: the first of the running month
    end: datetime.date | None = None  # not part of it; null: tomorrow
    group_by: GroupBy | None = None  # null: the total only


class QualityPeriod(Period):
    # Of a million tokens, in micros of a currency: for the cost of a thousand accepted tokens.
    prompt_price_micros: Annotated[int, Field(ge=0, le=_MAX_PRICE)] | None = None
    generated_price_micros: Annotated[int, Field(ge=0, le=_MAX_PRICE)] | None = None


class ReportRow(Answer):
    key: str  # a day, a team's id, a name; "": not known, or no team
    label: str
    users: int | None  # people who were active; null: suppressed
    counts: dict[str, int] | None  # null: suppressed
    suppressed: str | None  # why; null: it is shown


class QualityRow(ReportRow):
    metrics: dict[str, float | None] | None  # null: suppressed; of one metric: nothing to divide by


class ReportAnswer(Answer):
    start: datetime.date
    end: datetime.date
    group_by: GroupBy | None
    # What gateways had delivered of the time before is counted; null: nothing is yet.
    complete_until: datetime.datetime | None
    generated_at: datetime.datetime
    definition_version: int
    min_users: int  # groups of fewer people are suppressed
    sources: dict[str, str]  # who has observed each count


class UsageReport(ReportAnswer):
    rows: list[ReportRow]
    total: ReportRow


class Definition(Answer):
    name: str
    definition: str
    source: str  # who has observed it
    unit: str


class QualityReport(ReportAnswer):
    rows: list[QualityRow]
    total: QualityRow
    definitions: list[Definition]


class ReportSettings(Answer):
    min_users: int


class SetReportSettings(
    Body, json_schema_extra={"example": {"min_users": 5, "reason": "As the works council asks."}}
):
    min_users: Annotated[int, Field(ge=1, le=MAX_MIN_USERS)]  # 1: no group is suppressed
    reason: str


@router.get(
    "/usage",
    response=UsageReport,
    summary="Usage of a period: all of the tenant's, or one's own.",
    openapi_extra=open_to(Permission.READ_USAGE, Permission.READ_OWN_USAGE),
)
def usage(request: ApiRequest, period: Query[Period]) -> dict[str, Any]:
    now = timezone.now()
    found = report(actor=actor_of(request), kind=Kind.USAGE, asked=_asked(period, now))
    return {
        **_head(found, now),
        "rows": [_row(row) for row in found.rows],
        "total": _row(found.total),
    }


@router.get(
    "/quality",
    response=QualityReport,
    summary="Quality of a period, each metric with its definition: the tenant's, or one's own.",
    openapi_extra=open_to(Permission.READ_QUALITY, Permission.READ_OWN_QUALITY),
)
def quality(request: ApiRequest, period: Query[QualityPeriod]) -> dict[str, Any]:
    now = timezone.now()
    metrics = (*METRICS, cost_metric(_price(period)))
    found = report(actor=actor_of(request), kind=Kind.QUALITY, asked=_asked(period, now))
    return {
        **_head(found, now),
        "rows": [_row(row) | _metrics(row, metrics) for row in found.rows],
        "total": _row(found.total) | _metrics(found.total, metrics),
        "definitions": metrics,
    }


@router.put(
    "/settings",
    response=ReportSettings,
    summary="Say how many people a group must have to be shown.",
    openapi_extra=open_to(Permission.WRITE_POLICY),
)
def configure(request: ApiRequest, asked: SetReportSettings) -> dict[str, int]:
    set_min_group_users(
        actor=actor_of(request),
        min_users=asked.min_users,
        reason=asked.reason,
        now=timezone.now(),
    )
    return {"min_users": asked.min_users}


def _asked(period: Period, now: datetime.datetime) -> Asked:
    today = now.date()
    end = period.end or _next_day(today)
    return Asked(period.start or today.replace(day=1), end, period.group_by)


def _next_day(day: datetime.date) -> datetime.date:
    return day + datetime.timedelta(days=1)


def _price(period: QualityPeriod) -> Price | None:
    prompt, generated = period.prompt_price_micros, period.generated_price_micros
    if prompt is None and generated is None:
        return None
    if prompt is None or generated is None:
        raise Invalid("generated_price_micros", "Give both prices, or neither.")
    return Price(prompt, generated)


def _head(found: Report, now: datetime.datetime) -> dict[str, Any]:
    return {
        **{name: getattr(found.asked, name) for name in ("start", "end", "group_by")},
        "complete_until": found.complete_until,
        "generated_at": now,
        "definition_version": DEFINITION_VERSION,
        "min_users": found.min_users,
        "sources": SOURCES,
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "key": row.key,
        "label": row.label,
        "users": row.users,
        "counts": None if row.counts is None else asdict(row.counts),
        "suppressed": row.suppression,
    }


def _metrics(row: Row, metrics: tuple[Metric, ...]) -> dict[str, Any]:
    return {"metrics": None if row.counts is None else _values(row.counts, metrics)}


def _values(counts: Counts, metrics: tuple[Metric, ...]) -> dict[str, float | None]:
    return {metric.name: metric.of(counts) for metric in metrics}
