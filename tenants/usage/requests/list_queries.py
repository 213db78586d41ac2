"""Lists of requests: what they were and how they went, never who made them and never their text.

They are what a tenant is billed for, so who may see its usage may see all of them. But a list that
filters have narrowed to a few people is their diary: that it was read is in the audit trail.
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
from caret.contracts.usage import Finish
from caret.foundation.postgres.tenant_scope import tenant
from tenants.base.pagination import MAX_PAGE, Page, Place, page_of, read_cursor
from tenants.models import UsageRecord
from tenants.security.audit.operations import Facts, record_read
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.filters import EVERYTHING, Only, part_of
from tenants.usage.reports.queries import min_group_users
from tenants.usage.requests.queries import visible_to

# Of longer times the last days: what a filter rarely lets through is looked for in all of them.
MAX_LISTED: Final = timedelta(days=31)
MAX_SORTED: Final = timedelta(days=7)


class Ended(StrEnum):
    """Several ways of ending, as people ask for them."""

    COMPLETED = "completed"
    TAKEN_BACK = "taken_back"
    WITHHELD = "withheld"
    NOT_SERVED = "not_served"
    ERROR = "error"


_FINISHES: Final = MappingProxyType(
    {
        Ended.COMPLETED: (Finish.STOP, Finish.LENGTH),
        Ended.TAKEN_BACK: (Finish.CANCELLED, Finish.SUPERSEDED),
        Ended.WITHHELD: (Finish.FILTERED,),
        Ended.NOT_SERVED: (Finish.SHED, Finish.BUDGET),
        Ended.ERROR: (Finish.ERROR,),
    }
)


class Order(StrEnum):
    NEWEST = "newest"
    SLOW = "slow"  # by first token, the latest first
    BUSY = "busy"  # by how many were at the replica already


@dataclass(frozen=True, slots=True)
class Wanted:
    begins_at: datetime
    ends_at: datetime
    only: Only = EVERYTHING
    mode: Mode | None = None
    ended: Ended | None = None
    order: Order = Order.NEWEST

    @property
    def since(self) -> datetime:
        """Where the list begins, later than what was asked about where that is long."""
        longest = MAX_LISTED if self.order is Order.NEWEST else MAX_SORTED
        return max(self.begins_at, self.ends_at - longest)

    @property
    def filters(self) -> dict[str, str]:
        """As the audit trail has them; empty: none."""
        said = {**asdict(self.only), "mode": self.mode, "ended": self.ended}
        return {name: str(value) for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class RequestLine:
    request_id: UUID
    occurred_at: datetime
    mode: Mode
    language: str  # "": not told, here and below
    editor: str
    model: str
    variant: str
    finish: Finish
    error_code: str
    prompt_tokens: int
    cached_tokens: int | None  # None: the engine did not tell
    generated_tokens: int
    first_token_ms: float | None  # None: no text was sent
    num_at_replica: int | None  # None: it never got there
    total_ms: float


@dataclass(frozen=True, slots=True)
class Listed:
    page: Page[RequestLine]
    is_of_few: bool  # the filters' doing, and recorded


def page_of_requests(
    *, actor: Actor, wanted: Wanted, limit: int, cursor: str | None, now: datetime
) -> Listed:
    """Newest first, page by page; in another order the first page is all there is. Raises
    Forbidden, Invalid. One query; with filters two, and the audit entry of a page of a few people's
    requests."""
    assert 1 <= limit <= MAX_PAGE
    after = read_cursor(cursor)
    with tenant(actor.tenant_id):
        rows = list(_sorted(_found(actor, wanted), wanted.order, after)[: limit + 1])
        is_of_few = bool(wanted.filters) and _are_few(actor, rows[:limit])
        if is_of_few:
            record_read(
                actor=actor,
                action="request.listed",
                target="requests",
                now=now,
                asked=_limits(wanted),
            )
    return Listed(_page(rows, wanted.order, limit), is_of_few)


def _are_few(actor: Actor, rows: Iterable[UsageRecord]) -> bool:
    """Fewer people than the tenant's minimum, who are not oneself alone."""
    people = {str(row.user_id) for row in rows if row.user_id is not None}
    return bool(people - {actor.user_id}) and len(people) < min_group_users(actor)


def _limits(wanted: Wanted) -> Facts:
    times = {"since": wanted.since.isoformat(), "until": wanted.ends_at.isoformat()}
    return {**wanted.filters, **times}


def _page(rows: Iterable[UsageRecord], order: Order, limit: int) -> Page[RequestLine]:
    lines = [_line(row) for row in rows]
    if order is not Order.NEWEST:
        return Page(lines[:limit], None)
    return page_of(lines, limit=limit, place=lambda line: Place(line.occurred_at, line.request_id))


def _found(actor: Actor, wanted: Wanted) -> QuerySet[UsageRecord]:
    found = UsageRecord.objects.filter(
        part_of(actor, wanted.only, is_raw=True),
        occurred_at__gte=wanted.since,
        occurred_at__lt=wanted.ends_at,
    )
    if wanted.mode is not None:
        found = found.filter(mode=wanted.mode)
    if wanted.ended is not None:
        found = found.filter(finish__in=_FINISHES[wanted.ended])
    return visible_to(actor, found)


def _sorted(
    found: QuerySet[UsageRecord], order: Order, after: Place | None
) -> QuerySet[UsageRecord]:
    if order is Order.SLOW:
        return found.filter(first_token_ms__isnull=False).order_by("-first_token_ms", "request_id")
    if order is Order.BUSY:
        return found.order_by(F("num_at_replica").desc(nulls_last=True), "request_id")
    if after is not None:
        earlier = Q(occurred_at__lt=after.at)
        found = found.filter(earlier | Q(occurred_at=after.at, request_id__lt=after.id))
    return found.order_by("-occurred_at", "-request_id")


def _line(row: UsageRecord) -> RequestLine:
    return RequestLine(
        request_id=row.request_id,
        occurred_at=row.occurred_at,
        mode=Mode(row.mode),
        language=row.language,
        editor=row.editor or "",
        model=row.model or "",
        variant=row.variant or "",
        finish=Finish(row.finish),
        error_code=row.error_code,
        prompt_tokens=row.prompt_tokens,
        cached_tokens=row.cached_tokens,
        generated_tokens=row.generated_tokens,
        first_token_ms=row.first_token_ms,
        num_at_replica=row.num_at_replica,
        total_ms=row.total_ms,
    )
