"""The tables of the pools' page as CSV files. Each file covers all pools."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext

from console.layout.lists.csv_response import csv_response
from console.operator_admin.overview import build_installation_context
from console.operator_admin.pools.presenters import ChangeLogEntry, rejection_reason
from tenants.compliance.exports.rows import Value
from tenants.fleet.pools.pool_status import RejectedReplica, ReplicaStatus
from tenants.fleet.pools.scraping.installation_status import InstallationStatus


def pools_csv(
    request: HttpRequest, installation: InstallationStatus, changes: Sequence[ChangeLogEntry] | None
) -> HttpResponse:
    """Return the file that the parameter `of` names, by default the replicas.

    `changes` is None if Redis is unreachable, so the changes are unknown.
    """
    if request.GET.get("of") == "changes":
        return _change_log_csv(changes)
    if request.GET.get("of") == "first-tokens":
        return _first_token_csv(installation)
    return _replica_csv(installation)


def _replica_csv(installation: InstallationStatus) -> HttpResponse:
    """Return all replicas, including rejected ones."""
    header = (
        *("pool", "tier", "model", "replica", "state", "drained"),
        *("gateways_open", "gateways_ejected", "in_flight", "running", "waiting"),
        *("kv_usage", "hit_rate", "gateways_rejecting", "why"),
    )
    lines: list[tuple[Value, ...]] = []
    for pool in installation.pools:
        pool_cells = (pool.name, pool.tier, pool.model)
        not_rejected = (None, "")  # the last two columns: gateways_rejecting and why
        lines += [
            (*pool_cells, *_replica_cells(replica), *not_rejected) for replica in pool.replicas
        ]
        lines += [(*pool_cells, *_rejected_cells(replica)) for replica in pool.rejected]
    return csv_response("replicas", header, lines, notes=_csv_notes(installation))


def _replica_cells(replica: ReplicaStatus) -> tuple[Value, ...]:
    return (
        *(replica.name, _replica_state(replica), replica.is_drained),
        *(replica.num_gateways_open, replica.num_gateways_ejected, replica.num_in_flight),
        *(replica.running, replica.waiting, replica.kv_usage, replica.hit_rate),
    )


def _rejected_cells(replica: RejectedReplica) -> tuple[Value, ...]:
    empty = (None,) * 8  # from drained to hit_rate
    return (replica.name, "rejected", *empty, replica.num_gateways, rejection_reason(replica))


def _replica_state(replica: ReplicaStatus) -> str:
    """Return the state without draining, which is a separate column.

    On the page, the badge of a healthy replica that is drained is "drained".
    """
    if replica.num_gateways_open:
        return "circuit breaker open"
    if replica.is_up is False:  # None: no gateway has tried to read its metrics yet
        return "no metrics"
    return "ejected" if replica.num_gateways_ejected else "healthy"


def _first_token_csv(installation: InstallationStatus) -> HttpResponse:
    header = ("pool", "mode", "requests", "p50_ms", "p99_ms", "target_ms", "over")
    lines = [
        (
            *(pool.name, first_token.mode.value, first_token.count),
            *(first_token.p50_ms, first_token.p99_ms),
            *(first_token.target_ms, first_token.is_over),
        )
        for pool in installation.pools
        for first_token in pool.first_tokens
    ]
    return csv_response("first-tokens", header, lines, notes=_csv_notes(installation))


def _change_log_csv(changes: Sequence[ChangeLogEntry] | None) -> HttpResponse:
    header = ("at", "replica", "change", "operator", "reason")
    lines = [
        (change.at, change.replica, change.description, change.operator, change.reason)
        for change in changes or ()
    ]
    redis_error = gettext(
        "Redis does not respond, so it is unknown which replicas are drained, and why."
    )
    notes = [redis_error] if changes is None else []
    return csv_response("replica-changes", header, lines, notes=notes)


def _csv_notes(installation: InstallationStatus) -> list[str]:
    notes = []
    if num := len(installation.unreachable):
        text = ngettext(
            "One gateway does not respond. Its data is missing here.",
            "%(n)s gateways do not respond. Their data is missing here.",
            num,
        )
        notes.append(text % {"n": num})
    return [*notes, _describe_window(build_installation_context(installation)["window_minutes"])]


def _describe_window(minutes: int | None) -> str:
    if minutes is None:
        return gettext(
            "Rates and first tokens cover the time since the gateways started, as there is not "
            "enough history yet."
        )
    text = ngettext(
        "Rates and first tokens cover the last minute.",
        "Rates and first tokens cover the last %(n)s minutes.",
        minutes,
    )
    return text % {"n": minutes}
