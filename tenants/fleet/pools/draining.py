"""Draining of replicas, and returning them to service.

Changes are written to Redis. Gateways follow within a second, and requests in flight finish
normally. Each change names the operator and the reason.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
import redis
import structlog
from django.utils.translation import gettext_noop

from caret.contracts.drained_replicas import (
    DRAINS,
    DRAINS_CHANGED,
    DRAINS_LOG,
    DRAINS_VERSION,
    SCHEMA,
    DrainChange,
    decode_drain,
    encode_drain,
)
from caret.foundation.clock import from_unix_ms, to_unix_ms
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.validation.text import parse_reason
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.fleet_state import FleetStateStore

_STORE: Final = FleetStateStore(DRAINS, DRAINS_VERSION, DRAINS_LOG, DRAINS_CHANGED)
ReplicasByPool = Mapping[str, frozenset[str]]  # replicas as host:port
logger = structlog.get_logger(__name__)


class LastReplicaOfPool(Conflict):
    """The pools would have no replica left in service.

    To drain or remove the replica anyway, the operator types its name as a confirmation.
    """

    def __init__(self, pools: list[str]) -> None:
        pool_names = ", ".join(pools)
        super().__init__(
            gettext_noop("This is the last replica of {pools} that is not drained."),
            pools=pool_names,
        )
        self.pools = pools


@dataclass(frozen=True, slots=True)
class DrainRecord:
    replica: str  # host:port
    is_drained: bool  # False: it was returned to service
    operator: str  # the operator's handle
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class DrainState:
    version: str  # the version in Redis; "0": nothing was ever drained
    drained: dict[str, DrainRecord]  # by replica
    latest: list[DrainRecord]  # changes, newest first, returns to service included


@dataclass(frozen=True, slots=True)
class DrainRequest:
    replica: str  # host:port
    is_drained: bool  # False: return it to service
    reason: str
    # The replica's name, typed to confirm that a pool loses its last replica.
    confirmation: str = ""


def read_drains(connection: redis.Redis) -> DrainState:
    """Read the drained replicas and the latest changes. Raises RedisUnavailable."""
    state = _STORE.read(connection)
    return DrainState(
        version=state.version,
        drained={name: _decode_change(data, name) for name, data in state.entries.items()},
        latest=[_decode_change(data, "") for data in state.latest],
    )


def set_drain(
    connection: redis.Redis,
    *,
    operator: OperatorView,
    drain_request: DrainRequest,
    replicas_by_pool: ReplicasByPool,
    now: datetime,
) -> None:
    """Drain a replica, or end its draining.

    `replicas_by_pool` are the replicas that the gateways report. Raises Forbidden, InvalidValue,
    NotFound, LastReplicaOfPool, RedisUnavailable, and Conflict if the replica is already in this
    state or another operator was faster.
    """
    if not operator.can_change:
        raise Forbidden("Your operator role does not allow you to drain replicas.")
    reason = parse_reason(drain_request.reason)
    if not reason:
        raise InvalidValue("reason", "Enter a reason for the change log.")
    drains = read_drains(connection)
    if drain_request.is_drained:
        _require_drainable(drain_request, drains, replicas_by_pool)
    elif drain_request.replica not in drains.drained:
        raise Conflict("The replica is not drained.")
    drain = DrainChange(
        schema=SCHEMA,
        replica=drain_request.replica,
        is_drained=drain_request.is_drained,
        operator=operator.handle,
        reason=reason,
        at_ms=to_unix_ms(now),
    )
    # The version check stops two operators from draining a pool's last two replicas at once.
    _STORE.change_entry(
        connection,
        drain.replica,
        encode_drain(drain),
        is_set=drain.is_drained,
        version=drains.version,
    )
    logger.info(
        "operator.replica_drained" if drain_request.is_drained else "operator.replica_returned",
        operator=operator.handle,
        replica=drain_request.replica,
        reason=reason,
    )


def find_emptied_pools(
    replica: str, drained: Iterable[str], replicas_by_pool: ReplicasByPool
) -> list[str]:
    """Return the pools of `replica` whose other replicas are all drained, sorted."""
    unavailable = {*drained, replica}
    return sorted(
        pool
        for pool, replicas in replicas_by_pool.items()
        if replica in replicas and replicas <= unavailable
    )


def _require_drainable(
    drain_request: DrainRequest, drains: DrainState, replicas_by_pool: ReplicasByPool
) -> None:
    """Check that the replica can be drained. Raises NotFound, Conflict, LastReplicaOfPool."""
    if drain_request.replica not in {
        replica for replicas in replicas_by_pool.values() for replica in replicas
    }:
        raise NotFound("No gateway reports this replica.")
    if drain_request.replica in drains.drained:
        raise Conflict("The replica is already drained.")
    emptied_pools = find_emptied_pools(drain_request.replica, drains.drained, replicas_by_pool)
    if emptied_pools and drain_request.confirmation.strip() != drain_request.replica:
        raise LastReplicaOfPool(emptied_pools)


def _decode_change(data: bytes, name: str) -> DrainRecord:
    """Decode a change. If it is unreadable, return a record with `name` only.

    A newer version or something else has then written it. Gateways drain the replica nevertheless,
    because they read only its name.
    """
    try:
        drain = decode_drain(data)
        at = from_unix_ms(drain.at_ms)
    except (msgspec.DecodeError, OverflowError):
        return DrainRecord(name, is_drained=True, operator="", reason="", at=from_unix_ms(0))
    return DrainRecord(
        replica=drain.replica,
        is_drained=drain.is_drained,
        operator=drain.operator,
        reason=drain.reason,
        at=at,
    )
