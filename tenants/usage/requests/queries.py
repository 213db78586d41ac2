"""Queries of recent usage, a tenant's or the actor's own: of the last 24 hours, or by day."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncDay, TruncHour

from caret.contracts.usage import FinishReason, OutcomeEvent
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import Outcome, UsageRecord
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.filters import filter_visible_records
from tenants.usage.reports.latency import COMPLETED, WITH_FIRST_TOKEN, MedianAndP99

RECENT: Final = timedelta(hours=24)
MAX_DAYS: Final = 90  # of list_usage_by_day


@dataclass(frozen=True, slots=True)
class RecentUsage:
    """The usage of the last 24 hours."""

    requests: int
    completed: int  # ended by the model, by the filter at a good point, or at max_tokens
    errors: int
    accepted: int  # suggestions accepted as a whole, as editors report them
    prompt_tokens: int
    prompt_tokens_with_cache_info: int  # of requests whose engine reported cached tokens
    cached_tokens: int  # of `prompt_tokens_with_cache_info`
    generated_tokens: int
    # Of the times to the first token of completed requests. None: there were none.
    first_token_p50_ms: float | None
    first_token_p99_ms: float | None
    hourly_requests: list[int]  # of 24 clock hours, oldest first; the last is the current hour


@dataclass(frozen=True, slots=True)
class UsageDayView:
    """Usage of a UTC day."""

    day: date
    requests: int
    completed: int
    errors: int
    prompt_tokens: int
    prompt_tokens_with_cache_info: int  # as in RecentUsage
    cached_tokens: int
    generated_tokens: int


def read_recent_usage(*, actor: Actor, now: datetime) -> RecentUsage:
    """Return the usage of the last 24 hours.

    Three queries over the primary key. Raises Forbidden.
    """
    first_hour = now.replace(minute=0, second=0, microsecond=0) - RECENT + timedelta(hours=1)
    with tenant_scope(actor.tenant_id):
        records = filter_visible_records(actor, UsageRecord.objects.all())
        recent = records.filter(occurred_at__gt=now - RECENT)
        totals = recent.aggregate(
            **_COUNTS,
            percentiles=MedianAndP99("first_token_ms", filter=WITH_FIRST_TOKEN),
        )
        p50_ms, p99_ms = totals.pop("percentiles") or (None, None)
        hours = dict(
            records.filter(occurred_at__gte=first_hour)
            .values_list(TruncHour("occurred_at"))
            .annotate(requests=Count("*"))
        )
        accepted = (
            filter_visible_records(actor, Outcome.objects.all())
            .filter(occurred_at__gt=now - RECENT, event=OutcomeEvent.ACCEPTED)
            .count()
        )
    hourly = [hours.get(first_hour + timedelta(hours=hour), 0) for hour in range(24)]
    return RecentUsage(
        **totals,
        accepted=accepted,
        first_token_p50_ms=p50_ms,
        first_token_p99_ms=p99_ms,
        hourly_requests=hourly,
    )


def list_usage_by_day(*, actor: Actor, num_days: int, now: datetime) -> list[UsageDayView]:
    """Return the last `num_days` days, oldest first, including today and days without usage.

    `num_days` is at most MAX_DAYS. One query. Raises Forbidden.
    """
    assert 1 <= num_days <= MAX_DAYS
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=num_days - 1)
    with tenant_scope(actor.tenant_id):
        rows = (
            filter_visible_records(actor, UsageRecord.objects.filter(occurred_at__gte=first))
            .annotate(day=TruncDay("occurred_at"))
            .values("day")
            .annotate(**_COUNTS)
        )
        rows_by_day = {row.pop("day").date(): row for row in rows}
    days = [(first + timedelta(days=number)).date() for number in range(num_days)]
    return [UsageDayView(day=day, **rows_by_day.get(day, _NOTHING)) for day in days]


_COUNTS: Final[dict[str, Any]] = {
    "requests": Count("*"),
    "completed": Count("request_id", filter=COMPLETED),
    "errors": Count("request_id", filter=Q(finish_reason=FinishReason.ERROR)),
    "prompt_tokens_with_cache_info": Sum(
        "prompt_tokens", filter=Q(cached_tokens__isnull=False), default=0
    ),
    **{
        name: Sum(name, default=0)
        for name in ("prompt_tokens", "cached_tokens", "generated_tokens")
    },
}
_NOTHING: Final = dict.fromkeys(_COUNTS, 0)
