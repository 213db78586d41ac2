"""Lists of requests with their properties and results, but without users and text.

A tenant is billed for its requests, so a member who may see usage may see all of them. If filters
narrow a list to the requests of a few users, the list reveals much about these users. Reading such
a list is therefore recorded in the audit log.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from uuid import UUID

from django.db.models import F, Q, QuerySet

from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.pagination import MAX_PAGE, Page, PagePosition, build_page, decode_cursor
from tenants.models import UsageRecord
from tenants.security.audit.operations import ChangeFields, record_read
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.filters import (
    NO_FILTER,
    ReportFilter,
    build_filter_condition,
    filter_visible_records,
)
from tenants.usage.reports.queries import read_min_group_size

# The longest periods of a list: MAX_LISTED if the list is sorted newest first, MAX_SORTED in other
# orders. Of a longer period, the list shows only the end. Without a limit, a list with a filter
# that rarely matches would read all records.
MAX_LISTED: Final = timedelta(days=31)
MAX_SORTED: Final = timedelta(days=7)


class EndingFilter(StrEnum):
    """A group of finish reasons that can be filtered by."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    WITHHELD = "withheld"
    REJECTED = "rejected"
    ERROR = "error"


_FINISH_REASONS: Final = MappingProxyType(
    {
        EndingFilter.COMPLETED: (FinishReason.STOP, FinishReason.LENGTH),
        EndingFilter.CANCELLED: (FinishReason.CANCELLED, FinishReason.SUPERSEDED),
        EndingFilter.WITHHELD: (FinishReason.FILTERED,),
        EndingFilter.REJECTED: (FinishReason.SHED, FinishReason.BUDGET_EXCEEDED),
        EndingFilter.ERROR: (FinishReason.ERROR,),
    }
)


class RequestSort(StrEnum):
    NEWEST = "newest"
    SLOW = "slow"  # by first-token latency, longest first
    REPLICA_LOAD = "replica_load"  # by the number of requests already at the replica


@dataclass(frozen=True, slots=True)
class RequestFilter:
    starts_at: datetime
    ends_at: datetime
    report_filter: ReportFilter = NO_FILTER
    mode: Mode | None = None
    ended: EndingFilter | None = None
    order: RequestSort = RequestSort.NEWEST

    @property
    def since(self) -> datetime:
        """The beginning of the list, which may be later than `starts_at`."""
        longest = MAX_LISTED if self.order is RequestSort.NEWEST else MAX_SORTED
        return max(self.starts_at, self.ends_at - longest)

    @property
    def active_filters(self) -> dict[str, str]:
        """The filters in use, as the audit log records them."""
        values = {**asdict(self.report_filter), "mode": self.mode, "ended": self.ended}
        return {name: str(value) for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class RequestRow:
    request_id: UUID
    occurred_at: datetime
    mode: Mode
    # "": unknown.
    language: str
    editor: str
    model: str
    variant: str  # "": also no variant
    finish_reason: FinishReason
    error_code: str  # "" unless finish_reason is error
    prompt_tokens: int
    cached_tokens: int | None  # None: not reported by the engine
    generated_tokens: int
    first_token_ms: float | None  # None: no text was sent
    num_in_flight_at_replica: int | None  # None: the request reached no replica
    total_ms: float


@dataclass(frozen=True, slots=True)
class RequestPage:
    page: Page[RequestRow]
    # The list has filters, and all its pages together have requests of fewer users than the
    # tenant's minimum group size. False also if these requests are all the actor's own.
    is_small_group: bool


def list_requests(
    *, actor: Actor, request_filter: RequestFilter, limit: int, cursor: str | None, now: datetime
) -> RequestPage:
    """Return a page of requests. Orders other than newest first have one page only.

    Makes one query, or up to three with filters. If RequestPage.is_small_group, also records an
    audit entry.

    Raises Forbidden, InvalidValue.
    """
    assert 1 <= limit <= MAX_PAGE
    after = decode_cursor(cursor)
    with tenant_scope(actor.tenant_id):
        records = _filter_records(actor, request_filter)
        rows = list(_sort_records(records, request_filter.order, after)[: limit + 1])
        is_small_group = bool(request_filter.active_filters) and _is_small_group(
            actor, records, rows
        )
        if is_small_group:
            record_read(
                actor=actor,
                action="request.listed",
                target="requests",
                now=now,
                filters=_to_change_fields(request_filter),
            )
    return RequestPage(_build_page(rows, request_filter.order, limit), is_small_group)


def _is_small_group(
    actor: Actor, records: QuerySet[UsageRecord], page_rows: Iterable[UsageRecord]
) -> bool:
    """Return whether the records belong to fewer users than the minimum group size of reports.

    `page_rows` are some of the records. If these belong to enough users, the others are not read.
    Records of only the actor, or only of service keys, are not a small group.
    """
    min_group_size = read_min_group_size(actor)
    people = {row.user_id for row in page_rows} - {None}  # None: a service key's request
    if len(people) < min_group_size:
        user_ids = records.filter(user_id__isnull=False).values_list("user_id", flat=True)
        people.update(user_ids.distinct()[:min_group_size])
    return len(people) < min_group_size and any(str(user) != actor.user_id for user in people)


def _to_change_fields(request_filter: RequestFilter) -> ChangeFields:
    times = {"since": request_filter.since.isoformat(), "until": request_filter.ends_at.isoformat()}
    return {**request_filter.active_filters, **times}


def _build_page(rows: Iterable[UsageRecord], order: RequestSort, limit: int) -> Page[RequestRow]:
    request_rows = [_to_row(row) for row in rows]
    if order is not RequestSort.NEWEST:
        return Page(request_rows[:limit], None)
    return build_page(
        request_rows,
        limit=limit,
        get_position=lambda row: PagePosition(row.occurred_at, row.request_id),
    )


def _filter_records(actor: Actor, request_filter: RequestFilter) -> QuerySet[UsageRecord]:
    records = UsageRecord.objects.filter(
        build_filter_condition(actor, request_filter.report_filter, is_for_records=True),
        occurred_at__gte=request_filter.since,
        occurred_at__lt=request_filter.ends_at,
    )
    if request_filter.mode is not None:
        records = records.filter(mode=request_filter.mode)
    if request_filter.ended is not None:
        records = records.filter(finish_reason__in=_FINISH_REASONS[request_filter.ended])
    return filter_visible_records(actor, records)


def _sort_records(
    records: QuerySet[UsageRecord], order: RequestSort, after: PagePosition | None
) -> QuerySet[UsageRecord]:
    if order is RequestSort.SLOW:
        return records.filter(first_token_ms__isnull=False).order_by(
            "-first_token_ms", "request_id"
        )
    if order is RequestSort.REPLICA_LOAD:
        return records.order_by(F("num_in_flight_at_replica").desc(nulls_last=True), "request_id")
    if after is not None:
        is_earlier = Q(occurred_at__lt=after.at)
        records = records.filter(is_earlier | Q(occurred_at=after.at, request_id__lt=after.id))
    return records.order_by("-occurred_at", "-request_id")


def _to_row(row: UsageRecord) -> RequestRow:
    return RequestRow(
        request_id=row.request_id,
        occurred_at=row.occurred_at,
        mode=Mode(row.mode),
        language=row.language,
        editor=row.editor or "",
        model=row.model or "",
        variant=row.variant or "",
        finish_reason=FinishReason(row.finish_reason),
        error_code=row.error_code,
        prompt_tokens=row.prompt_tokens,
        cached_tokens=row.cached_tokens,
        generated_tokens=row.generated_tokens,
        first_token_ms=row.first_token_ms,
        num_in_flight_at_replica=row.num_in_flight_at_replica,
        total_ms=row.total_ms,
    )
