"""Values of the pools' page: the operators' recent changes, and reasons of rejected replicas."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tenants.fleet.pools.added_replicas import AddedReplicaRecord, AddedReplicas
from tenants.fleet.pools.draining import DrainState
from tenants.fleet.pools.fleet_state import MAX_SHOWN
from tenants.fleet.pools.pool_status import RejectedReplica

# By RejectedReplica.reason.
_REJECTION_REASONS: Final = {
    "host_not_allowed": _(
        "The pools file does not allow replicas at %(actual)s, only in %(expected)s."
    ),
    "name_not_found": _("The host name does not resolve."),
    "unreachable": _("The replica does not respond."),
    "no_identity": _("The replica does not report its model."),
    "model": _("The replica serves %(actual)s instead of %(expected)s."),
    "version": _("The replica serves %(actual)s, but the other replicas serve %(expected)s."),
    "context_length": _(
        "The replica's context length is %(actual)s tokens, but the pool requires %(expected)s."
    ),
    "tokenizer": _("The replica's tokenizer differs from the tokenizer of %(expected)s."),
    "block_size": _(
        "The replica's cache uses blocks of %(actual)s tokens instead of %(expected)s."
    ),
}


@dataclass(frozen=True, slots=True)
class ChangeLogEntry:
    at: datetime
    replica: str
    description: str  # such as "drained", in the reader's language
    operator: str  # handle of the operator
    reason: str


def changes_of(drains: DrainState | None, additions: AddedReplicas | None) -> list[ChangeLogEntry]:
    """Return the latest MAX_SHOWN changes, newest first.

    An argument is None if Redis was unreachable. Its changes are then left out.
    """
    drain_changes = (
        ChangeLogEntry(
            entry.at,
            entry.replica,
            gettext("drained") if entry.is_drained else gettext("undrained"),
            entry.operator,
            entry.reason,
        )
        for entry in (drains.latest if drains else ())
    )
    pool_changes = (  # additions to pools, and removals from them
        ChangeLogEntry(
            change.at,
            change.replica,
            _describe_pool_change(change),
            change.operator,
            change.reason,
        )
        for change in (additions.latest if additions else ())
    )
    return sorted((*drain_changes, *pool_changes), key=lambda entry: entry.at, reverse=True)[
        :MAX_SHOWN
    ]


def _describe_pool_change(change: AddedReplicaRecord) -> str:
    words = gettext("added to %(pool)s") if change.is_added else gettext("removed from %(pool)s")
    return words % {"pool": change.pool}


def rejection_reason(replica: RejectedReplica) -> str:
    """Return the reason as a sentence in the reader's language."""
    text = _REJECTION_REASONS.get(replica.reason)
    if text is None:  # a gateway of a newer release has more reasons
        return replica.reason
    return str(text) % {"actual": replica.actual, "expected": replica.expected}
