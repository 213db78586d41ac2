"""The operators' recent changes, drains and added replicas, in one list."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext

from tenants.fleet.pools.added_replicas import AddedReplicaRecord, AddedReplicas
from tenants.fleet.pools.draining import DrainState
from tenants.fleet.pools.fleet_state import MAX_SHOWN


@dataclass(frozen=True, slots=True)
class ChangeLogEntry:
    at: datetime
    replica: str
    what: str  # in the reader's language
    operator: str  # handle of the operator
    reason: str


def changes_of(drains: DrainState | None, additions: AddedReplicas | None) -> list[ChangeLogEntry]:
    """Return the changes newest first, at most MAX_SHOWN. None: Redis is unreachable."""
    drained = (
        ChangeLogEntry(
            each.at,
            each.replica,
            gettext("drained") if each.is_drained else gettext("undrained"),
            each.operator,
            each.reason,
        )
        for each in (drains.latest if drains else ())
    )
    added = (
        ChangeLogEntry(each.at, each.replica, _describe_addition(each), each.operator, each.reason)
        for each in (additions.latest if additions else ())
    )
    return sorted((*drained, *added), key=lambda change: change.at, reverse=True)[:MAX_SHOWN]


def _describe_addition(change: AddedReplicaRecord) -> str:
    words = gettext("added to %(pool)s") if change.is_added else gettext("removed from %(pool)s")
    return words % {"pool": change.pool}
