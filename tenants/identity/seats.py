"""Seats: members, with their last activity and their usage of this month.

The usage of a seat is that of one person. It is shown only if the tenant's reports show groups of
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

# Fields of both UsageDay and UsageCounters.
_COUNTERS: Final = ("requests", "shown", "accepted", "partially_accepted")


@dataclass(frozen=True, slots=True)
class SeatFigures:
    """One member's usage in this UTC month, as far as the rollups have counted it."""

    requests: int  # completions requested
    acceptance: float | None  # share of shown suggestions, 0 to 1; None: no suggestion was shown
    editor: str  # of the last day with a known editor; "": there is none
    cost_micros: int | None  # of the member's tokens; None: the actor may not see costs


@dataclass(frozen=True, slots=True)
class Seat:
    member: MemberRow
    last_active_at: datetime | None  # last use of one of the member's keys; None: never
    figures: SeatFigures | None  # None: hidden, because they are of a group of one user


@dataclass(frozen=True, slots=True)
class SeatPage:
    page: Page[Seat]
    min_users: int  # smallest group size in the tenant's reports; 1: figures are shown
    # None: the tenant has no plan, the figures are hidden, or the actor may not see costs.
    currency: Currency | None


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
    user_ids = [UUID(row.user_id) for row in member_page.rows]
    with tenant_scope(actor.tenant_id):
        min_users = read_min_group_size(actor)
        keys = ApiKey.objects.filter(tenant_id=actor.tenant_id, owner_id__in=user_ids)
        last_used_by_owner = dict(keys.values_list("owner_id").annotate(seen=Max("last_used_at")))
        figures = _read_figures(actor, user_ids, now) if min_users == 1 else {}
        currency = None
        if min_users == 1 and actor.has_permission(Permission.READ_BILLING):
            currency = find_currency(actor.tenant_id)
    seats = [
        Seat(row, last_used_by_owner.get(user_id), figures.get(user_id))
        for row, user_id in zip(member_page.rows, user_ids, strict=True)
    ]
    return SeatPage(Page(seats, member_page.next_cursor), min_users, currency)


def _read_figures(actor: Actor, user_ids: Sequence[UUID], now: datetime) -> dict[UUID, SeatFigures]:
    """Return the figures of each user. Two or three queries."""
    month = start_of_month(utc_day(now))
    days = UsageDay.objects.filter(
        tenant_id=actor.tenant_id,
        user_id__in=user_ids,
        starts_at__gte=datetime.combine(month, time(), UTC),
    )
    counter_rows = days.values_list("user_id").annotate(
        *(Sum(name, default=0) for name in _COUNTERS)
    )
    sums = {
        user_id: UsageCounters(**dict(zip(_COUNTERS, map(int, values), strict=True)))
        for user_id, *values in counter_rows
    }
    last_days = (
        days.exclude(editor="").values_list("user_id", "editor").annotate(at=Max("starts_at"))
    )
    # Sorted by `at`, so that a user's editor with the latest day replaces the others.
    editors = {user_id: editor for user_id, editor, _ in sorted(last_days, key=lambda row: row[2])}
    costs = None
    if actor.has_permission(Permission.READ_BILLING):
        spent = MonthSpend.objects.filter(
            tenant_id=actor.tenant_id, month=month, holder__in=[str(id_) for id_ in user_ids]
        )
        costs = dict(spent.values_list("holder", "micros"))
    return {
        user_id: SeatFigures(
            requests=sums.get(user_id, UsageCounters()).requests,
            acceptance=acceptance(sums.get(user_id, UsageCounters())),
            editor=editors.get(user_id, ""),
            cost_micros=None if costs is None else costs.get(str(user_id), 0),
        )
        for user_id in user_ids
    }
