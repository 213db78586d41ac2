"""Replicates snapshots from the Redis of the home region to the Redis of this region.

Rules:

1. The snapshot of a tenant that is pinned to another region is not copied. But if this region has a
   snapshot from before the tenant was pinned, the relay updates that snapshot. The gateways here
   then reject the tenant.
2. An older snapshot never replaces a newer one, even if a second relay runs (PUBLISH_SCRIPT).
3. The Redis key HOME_LAST_SEEN exists if the home region was reached recently. It expires after
   the longest allowed disconnect. Soon afterwards, the gateways reject all requests, because they
   may have missed a revocation.
"""

from typing import Any, Final, cast

import msgspec
import structlog
from redis.asyncio import Redis

from caret.contracts.snapshot import (
    CHANGE_CHANNEL,
    CHANGE_COUNTER,
    HOME_LAST_SEEN,
    PUBLISH_SCRIPT,
    SNAPSHOTS,
    VERSIONS,
    decode_snapshot,
)

_NO_VERSION: Final = -1  # lower than each version of a snapshot
_MAX_BATCH_SNAPSHOTS: Final = 50  # in one call of Redis: a snapshot may have megabytes
log = structlog.get_logger(__name__)


class SnapshotReplicator:
    def __init__(
        self, home_redis: Redis, local_redis: Redis, *, region: str, max_disconnect_s: int
    ) -> None:
        self._home_redis = home_redis
        self._local_redis = local_redis
        self._region = region
        self._max_disconnect_s = max_disconnect_s
        # Value of CHANGE_COUNTER in the home region at the last copy; None: nothing was copied yet.
        self._last_counter: bytes | None = None
        # By tenant ID: version of a snapshot that was not copied, because it is pinned to another
        # region.
        self._foreign_versions: dict[bytes, int] = {}

    async def sync(self) -> None:
        """Copy the snapshots that the home region has in a newer version.

        Raises RedisError or OSError if either Redis is unreachable.
        """
        counter = cast("bytes | None", await self._home_redis.get(CHANGE_COUNTER))
        # False: this is the first run, the relay was disconnected for too long, or this region's
        # Redis has lost its data. All versions are then compared, as after a restart of the relay.
        has_seen_home = await self._local_redis.exists(HOME_LAST_SEEN)
        if counter is None:
            return  # the home region's Redis has lost its data: keep the snapshots
        if counter != self._last_counter or not has_seen_home:
            if not has_seen_home:
                self._foreign_versions.clear()
            await self._copy_newer()
            self._last_counter = counter
        await self._local_redis.set(HOME_LAST_SEEN, "1", ex=self._max_disconnect_s)

    async def _copy_newer(self) -> None:
        versions = await _read_versions(self._local_redis)
        newer = [
            tenant
            for tenant, home_version in (await _read_versions(self._home_redis)).items()
            if home_version > versions.get(tenant, _NO_VERSION)
            and home_version > self._foreign_versions.get(tenant, _NO_VERSION)
        ]
        for start in range(0, len(newer), _MAX_BATCH_SNAPSHOTS):
            tenants = newer[start : start + _MAX_BATCH_SNAPSHOTS]
            encoded = await cast(Any, self._home_redis.hmget(SNAPSHOTS, tenants))
            for tenant, data in zip(tenants, encoded, strict=True):
                if data is not None:
                    await self._copy_snapshot(tenant, data, is_present=tenant in versions)

    async def _copy_snapshot(self, tenant: bytes, data: bytes, *, is_present: bool) -> None:
        try:
            snapshot = decode_snapshot(data)
        except msgspec.MsgspecError as error:
            # A newer Caret wrote the snapshot, so this relay cannot read the tenant's region.
            log.error("relay.unreadable", tenant_id=tenant.decode(), error=type(error).__name__)
            return
        if snapshot.region not in (None, self._region) and not is_present:
            self._foreign_versions[tenant] = snapshot.version
            return
        keys = (SNAPSHOTS, VERSIONS, CHANGE_COUNTER)
        arguments = (tenant, snapshot.version, data, CHANGE_CHANNEL)
        await cast(Any, self._local_redis.eval(PUBLISH_SCRIPT, len(keys), *keys, *arguments))
        log.info("relay.snapshot", tenant_id=snapshot.tenant_id, version=snapshot.version)


async def _read_versions(redis: Redis) -> dict[bytes, int]:
    """Return the versions of the snapshots by tenant ID."""
    entries = cast("dict[bytes, bytes]", await cast(Any, redis.hgetall(VERSIONS)))
    return {tenant: int(version) for tenant, version in entries.items() if version.isdigit()}
