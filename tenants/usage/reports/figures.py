"""Some counts of a period, by several things at once: see `breakdown`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from caret.foundation.postgres.tenant_scope import tenant
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.breakdown import break_down, row_of, rows_of
from tenants.usage.reports.filter_options import Choices, choices_of, names_of_teams
from tenants.usage.reports.queries import (
    Asked,
    GroupBy,
    Kind,
    Row,
    check,
    is_of_oneself,
    min_group_users,
    rolled,
)
from tenants.usage.reports.suppressed_figures import hidden_in
from tenants.usage.rollups.operations import complete_until


@dataclass(frozen=True, slots=True)
class Figures:
    is_own: bool
    total: Row
    by: Mapping[GroupBy, list[Row]]
    complete_until: datetime | None
    min_users: int
    choices: Choices
    teams: Mapping[str, str]  # names by id


def read_figures(
    *, actor: Actor, kind: Kind, asked: Asked, by: Sequence[GroupBy], names: Sequence[str]
) -> Figures:
    """`names`: of the counts that are wanted. Raises Forbidden, Invalid. Eight queries at most."""
    is_own = is_of_oneself(actor, kind)
    check(asked)
    with tenant(actor.tenant_id):
        found = break_down(rolled(actor, asked, is_own=is_own), asked, by, names=names)
        min_users = 1 if is_own else min_group_users(actor)
        hidden = hidden_in(actor, kind, asked, found, min_users=min_users)
        until = complete_until(actor.tenant_id)
        choices, teams = choices_of(actor, asked, is_own=is_own), names_of_teams(actor)
    return Figures(
        is_own=is_own,
        total=row_of("", found.every, hidden.whole),
        by={each: rows_of(found.by.get(each, {}), hidden.groups.get(each, {})) for each in by},
        complete_until=until,
        min_users=min_users,
        choices=choices,
        teams=teams,
    )
