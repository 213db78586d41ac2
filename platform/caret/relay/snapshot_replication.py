"""Replicates snapshots from home to the Redis of a region, and only those that concern it.

Rules:

1. A tenant that is pinned to another region never comes here. If its snapshot is here already, it
   is updated once more, so that the gateways here learn to reject the tenant.
2. An older snapshot never replaces a newer one, even with other writers (PUBLISH_SCRIPT).
3. HOME_HEARD marks that home was reached, and expires after the longest allowed disconnect. Without
   it gateways authenticate nobody, because they might have missed a revocation for too long.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
import structlog
from redis.asyncio import Redis

from caret.contracts.snapshot import (
    CHANGED,
    CHANGES,
    HOME_HEARD,
    PUBLISH_SCRIPT,
    SNAPSHOTS,
    VERSIONS,
    decode_snapshot,
)

_BATCH: Final = 50  # snapshots per call: each may be megabytes
Versions = Mapping[bytes, int]
log = structlog.get_logger(__name__)


class SnapshotReplicator:
    def __init__(
        self, home_redis: Redis, local_redis: Redis, *, region: str, max_cut_s: int
    ) -> None:
        self._home_redis = home_redis
        self._local_redis = local_redis
        self._region = region
        self._max_cut_s = max_cut_s
        self._last_counter: bytes | None = None  # home's counter at the last copy
        self._foreign_versions: dict[
            bytes, int
        ] = {}  # versions that were read and do not belong here

    async def sync(self) -> None:
        """Copy newer snapshots once.

        Raises RedisError or OSError if either Redis is unreachable.
        """
        changes = cast("bytes | None", await self._home_redis.get(CHANGES))
        has_memory = await self._local_redis.exists(HOME_HEARD)
        if changes is None:
            return  # home's Redis has lost its data: snapshots here stay and age
        if changes != self._last_counter or not has_memory:
            if not has_memory:
                self._foreign_versions.clear()
            await self._copy_newer()
            self._last_counter = changes
        await self._local_redis.set(HOME_HEARD, "1", ex=self._max_cut_s)

    async def _copy_newer(self) -> None:
        own_versions = await _read_versions(self._local_redis)
        newer = [
            tenant
            for tenant, version in (await _read_versions(self._home_redis)).items()
            if version > max(own_versions.get(tenant, -1), self._foreign_versions.get(tenant, -1))
        ]
        for start in range(0, len(newer), _BATCH):
            tenants = newer[start : start + _BATCH]
            encoded = await cast(Any, self._home_redis.hmget(SNAPSHOTS, tenants))
            for tenant, data in zip(tenants, encoded, strict=True):
                if data is not None:
                    await self._copy_snapshot(tenant, data, is_held=tenant in own_versions)

    async def _copy_snapshot(self, tenant: bytes, data: bytes, *, is_held: bool) -> None:
        try:
            snapshot = decode_snapshot(data)
        except msgspec.MsgspecError as error:
            # A newer schema: its region cannot be read.
            log.error("relay.unreadable", tenant_id=tenant.decode(), error=type(error).__name__)
            return
        if snapshot.region not in (None, self._region) and not is_held:
            self._foreign_versions[tenant] = snapshot.version
            return
        keys = (SNAPSHOTS, VERSIONS, CHANGES)
        arguments = (tenant, snapshot.version, data, CHANGED)
        await cast(Any, self._local_redis.eval(PUBLISH_SCRIPT, len(keys), *keys, *arguments))
        log.info("relay.snapshot", tenant_id=snapshot.tenant_id, version=snapshot.version)


async def _read_versions(redis: Redis) -> dict[bytes, int]:
    entries = cast("dict[bytes, bytes]", await cast(Any, redis.hgetall(VERSIONS)))
    return {tenant: int(version) for tenant, version in entries.items() if version.isdigit()}
