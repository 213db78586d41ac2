"""A tenant's usage and quality over a period, from the roll-ups of its days.

Rows add up to the total, save those of teams: a member of two teams counts in both, as the teams
are now. People are counted from the sets of users of each day, never added up.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import Any, Final

from django.contrib.postgres.aggregates import StringAgg
from django.db.models import QuerySet, Sum, TextField
from django.db.models.functions import Cast

from caret.foundation.postgres.tenancy import tenant
from tenants.errors import Invalid
from tenants.members.actor import Actor
from tenants.members.permissions import Permission
from tenants.metrics.counts import NAMES, Counts, total
from tenants.metrics.roll_up import complete_until
from tenants.metrics.suppress import Suppression, suppressed
from tenants.models import Team, TeamMembership, Tenant, UsageDay
from tenants.models.rollup import SERVICES

MAX_DAYS: Final = 366
NO_TEAM: Final = ""


class GroupBy(StrEnum):
    DAY = "day"
    TEAM = "team"
    LANGUAGE = "language"
    EDITOR = "editor"
    MODEL = "model"
    VARIANT = "variant"


class Kind(StrEnum):
    USAGE = "usage"
    QUALITY = "quality"


# What opens a report of all, and one of oneself.
PERMISSIONS: Final = {
    Kind.USAGE: (Permission.READ_USAGE, Permission.READ_OWN_USAGE),
    Kind.QUALITY: (Permission.READ_QUALITY, Permission.READ_OWN_QUALITY),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """Days in UTC, half-open."""

    start: date
    end: date
    group_by: GroupBy | None = None  # None: the total only


@dataclass(frozen=True, slots=True)
class Row:
    key: str  # a day, a team's id, a name; "": not known, no team; of the total, too
    label: str  # for people
    users: int | None  # who were active, services not counted. None: suppressed
    counts: Counts | None  # None: suppressed
    suppression: Suppression | None = None


@dataclass(frozen=True, slots=True)
class Report:
    asked: Asked
    rows: list[Row]
    total: Row
    complete_until: datetime | None  # None: nothing was counted yet
    min_users: int  # groups of fewer are suppressed; 1: it is one's own


@dataclass(frozen=True, slots=True)
class _Group:
    counts: Counts
    users: frozenset[str]


def report(*, actor: Actor, kind: Kind, asked: Asked) -> Report:
    """Raises Forbidden, Invalid. Three to six queries, of the days' roll-ups."""
    _check(asked)
    is_own = not actor.may(PERMISSIONS[kind][0])
    if is_own:
        actor.require(PERMISSIONS[kind][1])
    with tenant(actor.tenant_id):
        days = _days(actor, asked, is_own=is_own)
        groups = _groups(actor, days, asked.group_by)
        every = _sum(groups) if _adds_up(asked.group_by) else _whole(days)
        labels = _labels(actor, asked.group_by)
        min_users = 1 if is_own else min_group_users(actor)
        until = complete_until(actor.tenant_id)
    hidden = _hidden(groups, every, asked.group_by, min_users)
    return Report(
        asked=asked,
        rows=[_row(key, group, labels, hidden.get(key)) for key, group in sorted(groups.items())],
        total=_row("", every, {}, _hidden_total(kind, every, min_users)),
        complete_until=until,
        min_users=min_users,
    )


def min_group_users(actor: Actor) -> int:
    return Tenant.objects.values_list("min_group_users", flat=True).get(id=actor.tenant_id)


def _check(asked: Asked) -> None:
    if not 1 <= (asked.end - asked.start).days <= MAX_DAYS:
        raise Invalid("end", f"A report covers 1 to {MAX_DAYS} days; `end` is not part of it.")


def _days(actor: Actor, asked: Asked, *, is_own: bool) -> QuerySet[UsageDay]:
    days = UsageDay.objects.filter(
        tenant_id=actor.tenant_id,
        starts_at__gte=datetime.combine(asked.start, time(), UTC),
        starts_at__lt=datetime.combine(asked.end, time(), UTC),
    )
    if not is_own:
        return days
    return days.none() if actor.user_id is None else days.filter(user_id=actor.user_id)


def _adds_up(group_by: GroupBy | None) -> bool:
    return group_by not in (None, GroupBy.TEAM)


def _sum(groups: Mapping[str, _Group]) -> _Group:
    users = frozenset[str]().union(*(group.users for group in groups.values()))
    return _Group(total(group.counts for group in groups.values()), users)


def _whole(days: QuerySet[UsageDay]) -> _Group:
    who = days.values_list("user_id", flat=True).distinct()
    return _Group(_counts(days.aggregate(**_SUMS)), _people(map(str, who)))


def _groups(actor: Actor, days: QuerySet[UsageDay], group_by: GroupBy | None) -> dict[str, _Group]:
    if group_by is None:
        return {}
    if group_by is GroupBy.TEAM:
        return _teams(actor, days)
    column = "starts_at" if group_by is GroupBy.DAY else group_by.value
    if group_by is GroupBy.DAY:
        return {
            _text(sums[column]): _Group(_counts(sums), _people(sums["who"].split()))
            for sums in days.values(column).annotate(**_SUMS, who=_WHO)
        }
    users: defaultdict[str, list[str]] = defaultdict(list)
    for key, user_id in days.values_list(column, "user_id").distinct():
        users[key].append(str(user_id))
    return {
        sums[column]: _Group(_counts(sums), _people(users[sums[column]]))
        for sums in days.values(column).annotate(**_SUMS)
    }


def _teams(actor: Actor, days: QuerySet[UsageDay]) -> dict[str, _Group]:
    of_user = {sums["user_id"]: _counts(sums) for sums in days.values("user_id").annotate(**_SUMS)}
    members: defaultdict[str, set[Any]] = defaultdict(set)
    for team_id, user_id in TeamMembership.objects.filter(tenant_id=actor.tenant_id).values_list(
        "team_id", "user_id"
    ):
        if user_id in of_user:
            members[str(team_id)].add(user_id)
    if rest := of_user.keys() - set().union(*members.values()):
        members[NO_TEAM] = set(rest)
    return {
        key: _Group(
            total(of_user[user_id] for user_id in users),
            _people(map(str, users)),
        )
        for key, users in members.items()
    }


def _labels(actor: Actor, group_by: GroupBy | None) -> dict[str, str]:
    if group_by is not GroupBy.TEAM:
        return {}
    teams = Team.objects.filter(tenant_id=actor.tenant_id).values_list("id", "name")
    return {str(team_id): name for team_id, name in teams}


def _hidden(
    groups: Mapping[str, _Group], every: _Group, group_by: GroupBy | None, min_users: int
) -> dict[str, Suppression]:
    users_of = {key: groups[key].users for key in sorted(groups)}
    overlap = every.users if group_by is GroupBy.TEAM else None
    return suppressed(users_of, min_users=min_users, everybody=overlap)


def _hidden_total(kind: Kind, every: _Group, min_users: int) -> Suppression | None:
    """Usage is the tenant's bill: it sees the whole of it, however few its people are."""
    is_small = 0 < len(every.users) < min_users
    return Suppression.SMALL if is_small and kind is Kind.QUALITY else None


def _row(
    key: str, group: _Group, labels: Mapping[str, str], suppression: Suppression | None
) -> Row:
    label = labels.get(key, key)
    if suppression is not None:
        return Row(key, label, users=None, counts=None, suppression=suppression)
    return Row(key, label, users=len(group.users), counts=group.counts)


def _counts(sums: Mapping[str, Any]) -> Counts:
    return Counts(**{name: int(sums[f"sum_{name}"]) for name in NAMES})


def _people(who: Iterable[str]) -> frozenset[str]:
    return frozenset(who) - {str(SERVICES)}


def _text(key: datetime | str) -> str:
    return key.astimezone(UTC).date().isoformat() if isinstance(key, datetime) else key


# By day, where every user comes again and again: one text instead of thousands of rows, each of
# which would be parsed. Of few groups sorting the texts would take longer than parsing rows.
_WHO: Final = StringAgg(Cast("user_id", TextField()), " ", distinct=True)
_SUMS: Final = {f"sum_{name}": Sum(name, default=0) for name in NAMES}
