"""Publishing of snapshots to Redis, where gateways read them.

An operation that changes a snapshot raises the tenant's `snapshot_version` in its own transaction
(tenants.policy.snapshot_version), and publishes the snapshot after the commit.
`republish_stale_snapshots` runs every few seconds and publishes the snapshots that Redis lacks. A
snapshot is missing if the process was killed before the publication, if Redis was unavailable, or
if Redis lost its data or restored older data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import cast

import redis
import structlog
from django.utils import timezone

from caret.contracts.snapshot import (
    CHANGE_CHANNEL,
    CHANGE_COUNTER,
    PUBLISH_SCRIPT,
    SNAPSHOTS,
    VERSIONS,
    TenantSnapshot,
    encode_snapshot,
)
from caret.foundation.ids import TenantId
from tenants.base.errors import DomainError
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.snapshots.queries import read_snapshot
from tenants.models import Tenant

logger = structlog.get_logger(__name__)


def publish_snapshot(*, tenant_id: TenantId, now: datetime) -> None:
    """Write the tenant's snapshot to Redis, unless Redis has the same version or a newer one.

    Raises NotFound, and redis.RedisError when Redis does not answer.
    """
    snapshot = read_snapshot(tenant_id=tenant_id, now=now)
    write_snapshot(connect_to_redis(), snapshot)
    Tenant.objects.filter(id=tenant_id, published_version__lt=snapshot.version).update(
        published_version=snapshot.version
    )


def try_publish_snapshot(tenant_id: TenantId) -> bool:
    """Publish the tenant's snapshot now, and return whether Redis responded.

    If it did not, `republish_stale_snapshots` publishes the snapshot within seconds after Redis
    responds again. Raises NotFound.
    """
    try:
        publish_snapshot(tenant_id=tenant_id, now=timezone.now())
    except redis.RedisError as error:
        logger.warning(
            "snapshot.publication_delayed", tenant_id=tenant_id, reason=type(error).__name__
        )
        return False
    return True


def write_snapshot(connection: redis.Redis, snapshot: TenantSnapshot) -> bool:
    """Write a snapshot, and return False if Redis already has this version or a newer one."""
    redis_keys = (SNAPSHOTS, VERSIONS, CHANGE_COUNTER)
    arguments = (snapshot.tenant_id, snapshot.version, encode_snapshot(snapshot), CHANGE_CHANNEL)
    published = connection.eval(PUBLISH_SCRIPT, len(redis_keys), *redis_keys, *arguments)
    return bool(published)


def republish_stale_snapshots(*, now: datetime) -> int:
    """Publish the snapshots that Redis lacks, and return how many were published.

    One query and one read of Redis if there is nothing to do. Raises redis.RedisError.
    """
    # Redis is read before the database. A change that is published in between then looks
    # unpublished, which costs one needless attempt. If the database were read first, Redis would
    # seem to have a newer version than the database, as after the restore of a backup.
    published_state = _read_published(connect_to_redis())
    repairs = plan_repairs(_read_tenant_versions(), published_state)
    return sum(_repair_snapshot(tenant_id, repair, now) for tenant_id, repair in repairs.items())


class RepairReason(StrEnum):
    """The reason why a snapshot must be published again."""

    UNPUBLISHED = "unpublished"  # Redis has an older version: a change was not published
    LOST = "lost"  # Redis has no version: it lost its data
    AHEAD = "ahead"  # Redis has a newer version: the database was restored from a backup
    CORRUPT = "corrupt"  # Redis has the version's number without its snapshot


@dataclass(frozen=True, slots=True)
class SnapshotRepair:
    reason: RepairReason
    # The version in Redis, which the published version must exceed. None: publish the version that
    # the database has.
    version_to_exceed: int | None


@dataclass(frozen=True, slots=True)
class PublishedState:
    """The versions and snapshots in Redis."""

    versions: Mapping[TenantId, int]
    snapshots: frozenset[TenantId]  # tenants whose snapshot is in Redis


def plan_repairs(
    versions: Mapping[TenantId, int], published_state: PublishedState
) -> dict[TenantId, SnapshotRepair]:
    """Return the repairs of the tenants whose snapshots must be published again.

    `versions` are those in the database.
    """
    repairs = {}
    for tenant_id, version in versions.items():
        published_version = published_state.versions.get(tenant_id)
        if published_version is None:
            repairs[tenant_id] = SnapshotRepair(RepairReason.LOST, None)
        elif published_version > version:
            repairs[tenant_id] = SnapshotRepair(RepairReason.AHEAD, published_version)
        elif tenant_id not in published_state.snapshots:
            repairs[tenant_id] = SnapshotRepair(RepairReason.CORRUPT, published_version)
        elif published_version < version:
            repairs[tenant_id] = SnapshotRepair(RepairReason.UNPUBLISHED, None)
    return repairs


def _read_tenant_versions() -> dict[TenantId, int]:
    rows = Tenant.objects.values_list("id", "snapshot_version")
    return {TenantId(str(tenant_id)): version for tenant_id, version in rows.iterator()}


def _read_published(connection: redis.Redis) -> PublishedState:
    pipeline = connection.pipeline(transaction=True)
    pipeline.hgetall(VERSIONS)
    pipeline.hkeys(SNAPSHOTS)
    versions, snapshots = pipeline.execute()
    return PublishedState(
        versions={
            TenantId(field.decode()): int(version)
            for field, version in cast(dict[bytes, bytes], versions).items()
        },
        snapshots=frozenset(TenantId(field.decode()) for field in cast(list[bytes], snapshots)),
    )


def _repair_snapshot(tenant_id: TenantId, repair: SnapshotRepair, now: datetime) -> bool:
    """Publish a snapshot, and return whether this succeeded. Raises redis.RedisError."""
    if repair.version_to_exceed is not None:
        _raise_version_above(tenant_id, repair.version_to_exceed)
    try:
        publish_snapshot(tenant_id=tenant_id, now=now)
    except DomainError as error:
        # The tenant's rows give no valid snapshot. Other tenants must still be published.
        logger.error("snapshot.build_failed", tenant_id=tenant_id, reason=error.message)
        return False
    logger.info("snapshot.republished", tenant_id=tenant_id, reason=repair.reason.value)
    return True


def _raise_version_above(tenant_id: TenantId, version: int) -> None:
    """Raise the tenant's `snapshot_version` above `version`, unless it is already higher."""
    Tenant.objects.filter(id=tenant_id, snapshot_version__lte=version).update(
        snapshot_version=version + 1
    )
