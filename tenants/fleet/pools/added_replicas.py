"""Adding replicas to pools at run time, and removing them again.

The gateways' pools file lists the hosts on which replicas may be added, and gateways report these
hosts. Each gateway checks the host of an added replica again. Before it sends a request, it also
checks that the replica's engine matches the pool.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

import msgspec
import redis
import structlog
from django.utils.translation import gettext_noop

from caret.contracts.added_replicas import (
    ADDITIONS,
    ADDITIONS_CHANGED,
    ADDITIONS_LOG,
    ADDITIONS_VERSION,
    ALLOWED_SPECULATION,
    SCHEMA,
    ReplicaChange,
    decode_replica_change,
    encode_replica_change,
)
from caret.foundation.clock import from_unix_ms, to_unix_ms
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.validation.text import parse_reason
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.draining import LastReplicaOfPool, ReplicasByPool, find_emptied_pools
from tenants.fleet.pools.fleet_state import FleetStateStore
from tenants.fleet.pools.replica_url import parse_engine_url, parse_kv_events_address

MAX_ADDED: Final = 1_000  # gateways read no more
_STORE: Final = FleetStateStore(ADDITIONS, ADDITIONS_VERSION, ADDITIONS_LOG, ADDITIONS_CHANGED)
# By pool: networks and host names where replicas may be added.
AllowedHosts = Mapping[str, Sequence[str]]
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AddedReplicaRecord:
    """An addition or a removal. `AddedReplicas.replicas` contains only additions."""

    pool: str
    replica: str  # host:port
    is_added: bool  # False: it was removed
    operator: str  # the operator's handle
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class AddedReplicas:
    version: str  # the version in Redis; "0": nothing was ever changed
    replicas: dict[tuple[str, str], AddedReplicaRecord]  # by pool and replica
    latest: list[AddedReplicaRecord]  # changes, newest first, removals included


@dataclass(frozen=True, slots=True)
class FleetView:
    """The pools' replicas and allowed hosts, as gateways report them, and the drained replicas."""

    replicas_by_pool: ReplicasByPool
    allowed_hosts: AllowedHosts
    drained: frozenset[str]  # replicas; empty if Redis does not respond


@dataclass(frozen=True, slots=True)
class RemovalRequest:
    pool: str
    replica: str  # host:port
    reason: str
    # The replica's name, typed to confirm that the pool loses its last replica.
    confirmation: str = ""


@dataclass(frozen=True, slots=True)
class AdditionRequest:
    pool: str
    url: str  # http(s)://host:port, as the operator enters it
    reason: str
    kv_events: str = ""  # address of its KV events (tcp://host:port); "": it publishes none
    speculation: str = ""  # one of ALLOWED_SPECULATION; "": no speculation


def read_additions(connection: redis.Redis) -> AddedReplicas:
    """Read the added replicas and the latest changes. Raises RedisUnavailable."""
    state = _STORE.read(connection)
    records, latest = state.decode(_decode_record)
    return AddedReplicas(
        version=state.version,
        replicas={(addition.pool, addition.replica): addition for addition in records.values()},
        latest=latest,
    )


def add_replica(
    connection: redis.Redis,
    *,
    operator: OperatorView,
    addition: AdditionRequest,
    fleet: FleetView,
    now: datetime,
) -> str:
    """Add a replica and return its name (host:port).

    Raises Forbidden, InvalidValue, Conflict, RedisUnavailable, and NotFound for an unknown pool.
    """
    _require_manager(operator)
    if addition.pool not in fleet.replicas_by_pool:
        raise NotFound("No gateway reports this pool.")
    allowed_hosts = fleet.allowed_hosts.get(addition.pool, ())
    if not allowed_hosts:
        raise Conflict(
            gettext_noop("The pools file does not allow you to add replicas to {pool}."),
            pool=addition.pool,
        )
    url = parse_engine_url(addition.url, allowed_hosts)
    kv_events = parse_kv_events_address(addition.kv_events, allowed_hosts)
    replica = urlsplit(url).netloc
    if addition.speculation not in ("", *ALLOWED_SPECULATION):
        raise InvalidValue("speculation", "Choose one of the options.")
    reason = _read_reason(addition.reason)
    additions = read_additions(connection)
    reported_replicas = fleet.replicas_by_pool[addition.pool]
    if replica in reported_replicas or (addition.pool, replica) in additions.replicas:
        raise Conflict(gettext_noop("{replica} is already in this pool."), replica=replica)
    if len(additions.replicas) >= MAX_ADDED:
        raise Conflict(gettext_noop("You can add at most {n} replicas."), n=MAX_ADDED)
    change = ReplicaChange(
        schema=SCHEMA,
        pool=addition.pool,
        url=url,
        is_added=True,
        operator=operator.handle,
        reason=reason,
        at_ms=to_unix_ms(now),
        kv_events=kv_events or None,
        speculation=addition.speculation or None,
    )
    _publish_change(connection, change, replica, additions.version)
    return replica


def remove_replica(
    connection: redis.Redis,
    *,
    operator: OperatorView,
    removal: RemovalRequest,
    fleet: FleetView,
    now: datetime,
) -> None:
    """Remove a replica that was added at run time.

    Raises Forbidden, InvalidValue, NotFound, LastReplicaOfPool, Conflict, RedisUnavailable.
    """
    _require_manager(operator)
    state = _STORE.read(connection)
    data = state.entries.get(_build_field(removal.pool, removal.replica))
    if data is None:
        raise NotFound("This replica was not added by an operator.")
    reason = _read_reason(removal.reason)
    emptied_pools = list_pools_emptied_by(removal.pool, removal.replica, fleet)
    if emptied_pools and removal.confirmation.strip() != removal.replica:
        raise LastReplicaOfPool(emptied_pools)
    try:
        url = decode_replica_change(data).url
    except msgspec.DecodeError:  # written by a newer version or by something else; remove it anyway
        url = f"http://{removal.replica}"
    change = ReplicaChange(
        schema=SCHEMA,
        pool=removal.pool,
        url=url,
        is_added=False,
        operator=operator.handle,
        reason=reason,
        at_ms=to_unix_ms(now),
    )
    _publish_change(connection, change, removal.replica, state.version)


def list_pools_emptied_by(pool: str, replica: str, fleet: FleetView) -> list[str]:
    """Return [pool] if all other replicas of the pool are drained, or if there are none.

    Otherwise return [], also if no gateway reports the replica in the pool.
    """
    replicas_by_pool = {pool: fleet.replicas_by_pool.get(pool, frozenset())}
    return find_emptied_pools(replica, fleet.drained, replicas_by_pool)


def _publish_change(
    connection: redis.Redis, change: ReplicaChange, replica: str, version: str
) -> None:
    _STORE.change_entry(
        connection,
        _build_field(change.pool, replica),
        encode_replica_change(change),
        is_set=change.is_added,
        version=version,
    )
    logger.info(
        "operator.replica_added" if change.is_added else "operator.replica_removed",
        operator=change.operator,
        pool=change.pool,
        replica=replica,
        reason=change.reason,
    )


def _require_manager(operator: OperatorView) -> None:
    if not operator.can_change:
        raise Forbidden("Your operator role does not allow you to add or remove replicas.")


def _read_reason(text: str) -> str:
    reason = parse_reason(text)
    if not reason:
        raise InvalidValue("reason", "Enter a reason for the change log.")
    return reason


def _build_field(pool: str, replica: str) -> str:
    """Return the replica's field in the Redis hash of added replicas: "POOL HOST:PORT"."""
    return f"{pool} {replica}"


def _decode_record(data: bytes) -> AddedReplicaRecord | None:
    """Decode a change; None: a newer version or something else has written it."""
    try:
        change = decode_replica_change(data)
        at = from_unix_ms(change.at_ms)
        replica = urlsplit(change.url).netloc
    except (msgspec.DecodeError, OverflowError, ValueError):
        return None
    return AddedReplicaRecord(
        pool=change.pool,
        replica=replica,
        is_added=change.is_added,
        operator=change.operator,
        reason=change.reason,
        at=at,
    )
