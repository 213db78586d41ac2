"""Seats: members with their activity and their figures of this month.

A seat's figures are those of one person. They are shown only if the tenant's reports show groups of
one user (tenants.usage.reports.operations.set_min_group_users).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Final
from uuid import UUID

from django.db.models import Max, Sum

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_month, utc_day
from tenants.base.money import Currency
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.billing.plans.queries import find_currency
from tenants.identity.members.search import MemberFilter, search_members
from tenants.models import ApiKey, MonthSpend, UsageDay
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MemberRow
from tenants.usage.reports.counters import UsageCounters
from tenants.usage.reports.metric_definitions import acceptance
from tenants.usage.reports.queries import read_min_group_size

_COUNTERS: Final = ("requests", "shown", "accepted", "partially_accepted")


@dataclass(frozen=True, slots=True)
class SeatFigures:
    """One member's figures of this UTC month, as far as rollups have counted them."""

    requests: int
    acceptance: float | None  # None: no suggestion was shown
    editor: str  # the last one; "": unknown
    cost_micros: int | None  # of the member's tokens; None: the actor may not see it


@dataclass(frozen=True, slots=True)
class Seat:
    member: MemberRow
    last_active_at: datetime | None  # last use of one of the member's keys; None: never
    figures: SeatFigures | None  # None: not shown, because it would be a group of one


@dataclass(frozen=True, slots=True)
class SeatPage:
    page: Page[Seat]
    min_users: int  # smallest group size in the tenant's reports; 1: figures are shown
    currency: Currency | None  # None: the tenant has no plan, or the actor may not see costs


def find_seats(
    *, actor: Actor, member_filter: MemberFilter, limit: int, cursor: str | None, now: datetime
) -> SeatPage:
    """Return a page of seats. Three to seven queries.

    Raises Forbidden, and InvalidValue for a bad cursor.
    """
    actor.require(Permission.READ_USAGE)
    member_page = search_members(
        actor=actor, member_filter=member_filter, limit=limit, cursor=cursor
    )
    users = [UUID(row.user_id) for row in member_page.rows]
    with tenant_scope(actor.tenant_id):
        min_users = read_min_group_size(actor)
        keys = ApiKey.objects.filter(tenant_id=actor.tenant_id, owner_id__in=users)
        last_used_by_owner = dict(keys.values_list("owner_id").annotate(seen=Max("last_used_at")))
        figures = _read_figures(actor, users, now) if min_users == 1 else {}
        currency = None
        if min_users == 1 and actor.has_permission(Permission.READ_BILLING):
            currency = find_currency(actor.tenant_id)
    seats = [
        Seat(row, last_used_by_owner.get(user), figures.get(user))
        for row, user in zip(member_page.rows, users, strict=True)
    ]
    return SeatPage(Page(seats, member_page.next_cursor), min_users, currency)


def _read_figures(actor: Actor, users: Sequence[UUID], now: datetime) -> dict[UUID, SeatFigures]:
    """Return the figures of each user. Two or three queries."""
    month = start_of_month(utc_day(now))
    days = UsageDay.objects.filter(
        tenant_id=actor.tenant_id,
        user_id__in=users,
        starts_at__gte=datetime.combine(month, time(), UTC),
    )
    counter_rows = days.values_list("user_id").annotate(
        *(Sum(name, default=0) for name in _COUNTERS)
    )
    sums = {
        user_id: UsageCounters(**dict(zip(_COUNTERS, map(int, values), strict=True)))
        for user_id, *values in counter_rows
    }
    last = days.exclude(editor="").values_list("user_id", "editor").annotate(at=Max("starts_at"))
    editors = {user_id: editor for user_id, editor, _ in sorted(last, key=lambda row: row[2])}
    costs = None
    if actor.has_permission(Permission.READ_BILLING):
        spent = MonthSpend.objects.filter(
            tenant_id=actor.tenant_id, month=month, holder__in=[str(user) for user in users]
        )
        costs = dict(spent.values_list("holder", "micros"))
    return {
        user: SeatFigures(
            requests=sums.get(user, UsageCounters()).requests,
            acceptance=acceptance(sums.get(user, UsageCounters())),
            editor=editors.get(user, ""),
            cost_micros=None if costs is None else costs.get(str(user), 0),
        )
        for user in users
    }
