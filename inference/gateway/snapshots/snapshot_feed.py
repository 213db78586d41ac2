"""Updates the snapshot store from Redis.

Pub/sub announces changes at once. A counter is polled, too, in case a message was missed.
"""

import asyncio
from typing import Any, Final, cast

import msgspec
import structlog
from redis.asyncio import Redis

from caret.contracts.snapshot import (
    CHANGE_CHANNEL,
    CHANGE_COUNTER,
    HOME_LAST_SEEN,
    SNAPSHOTS,
    VERSIONS,
    decode_snapshot,
)
from caret.foundation.clock import Clock
from caret.foundation.ids import TenantId
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from inference.redis_subscription import RedisSubscription

POLL_S: Final = 0.25  # the longest delay of a revocation whose message was missed
# Three intervals of the control plane's task that publishes lost snapshots again.
REPUBLICATION_S: Final = 15.0
log = structlog.get_logger(__name__)


class SnapshotFeed:
    def __init__(
        self,
        redis: Redis,
        snapshot_store: SnapshotStore,
        *,
        clock: Clock,
        is_relayed: bool = False,
    ) -> None:
        """`is_relayed`: a relay copies the snapshots here from the home region."""
        self._is_relayed = is_relayed
        self._redis = redis
        self._snapshot_store = snapshot_store
        self._clock = clock
        # The tenants that this gateway knows, but that Redis lacked at the last read.
        self._missing_tenants: frozenset[TenantId] = frozenset()
        # The monotonic time at which this set of missing tenants was first read.
        self._missing_since_s = 0.0
        # The counter's value at the last complete read; None: read again.
        self._seen_changes: bytes | str | None = None

    async def run(self) -> None:
        """Follow Redis until cancelled. Survives outages of Redis."""
        subscription = RedisSubscription(self._redis, CHANGE_CHANNEL, poll_s=POLL_S, retry_s=POLL_S)
        await subscription.follow(
            lambda _message: self.sync(), on_unreachable=self.on_redis_unreachable
        )

    def on_redis_unreachable(self, error: Exception) -> None:
        """Read everything again as soon as Redis responds."""
        log.warning("snapshots.unreachable", error=type(error).__name__)
        self._seen_changes = None
        self._missing_tenants = frozenset()  # REPUBLICATION_S begins again

    async def sync(self) -> None:
        """Read the snapshots that are newer than the stored ones.

        Then confirm all stored snapshots (`SnapshotStore.mark_synced`), unless some may be missing
        in Redis. Unconfirmed snapshots soon become too old to be used. Raises RedisError.
        """
        changes = await self._redis.get(CHANGE_COUNTER)
        if changes is None or changes != self._seen_changes:
            has_all = await self._read_newer()
            self._seen_changes = changes if has_all else None
        # Otherwise there is nothing newer to read: each publication increments the counter.
        if not self._may_lack_snapshots(changes):
            await self._mark_synced()

    def _may_lack_snapshots(self, changes: bytes | str | None) -> bool:
        """Return whether Redis may have lost snapshots that are not published again yet.

        The control plane publishes lost snapshots one by one, and may pause in between. A tenant
        that stays missing for REPUBLICATION_S does not exist any more, for example because the
        database was restored from a backup. `changes` None: nothing was published since the loss.
        """
        if not self._missing_tenants:
            return False
        missing_for_s = self._clock.monotonic_s() - self._missing_since_s
        return changes is None or missing_for_s <= REPUBLICATION_S

    async def _mark_synced(self) -> None:
        """Confirm the snapshots, unless a relay has not reached the home region for too long."""
        if not self._is_relayed or await self._redis.exists(HOME_LAST_SEEN):
            self._snapshot_store.mark_synced()

    async def _read_newer(self) -> bool:
        """Read the newer snapshots, and notice missing ones.

        Return False if a snapshot was unreadable and must be read again.
        """
        entries = cast("dict[bytes, bytes]", await cast(Any, self._redis.hgetall(VERSIONS)))
        versions = {
            TenantId(key.decode()): int(value) for key, value in entries.items() if value.isdigit()
        }
        own_versions = self._snapshot_store.versions
        newer = [
            tenant for tenant, version in versions.items() if version > own_versions.get(tenant, -1)
        ]
        encoded = await cast(Any, self._redis.hmget(SNAPSHOTS, list(newer))) if newer else []
        are_applied = []
        for tenant, data in zip(newer, encoded, strict=True):
            are_applied.append(self._apply_snapshot(tenant, data))
            # Each snapshot is decoded on the event loop: let other tasks run in between.
            await asyncio.sleep(0)
        missing_tenants = frozenset(own_versions.keys() - versions.keys())
        if missing_tenants != self._missing_tenants:
            self._missing_tenants = missing_tenants
            self._missing_since_s = self._clock.monotonic_s()
        return all(are_applied)

    def _apply_snapshot(self, tenant_id: TenantId, data: bytes | None) -> bool:
        try:
            snapshot = decode_snapshot(data or b"")
        except msgspec.MsgspecError as error:
            # The schema is newer, or the data is damaged. This tenant keeps its previous snapshot
            # until that snapshot is too old to be trusted. Other tenants are not affected.
            if self._snapshot_store.mark_unreadable(tenant_id):
                log.error("snapshots.unreadable", tenant_id=tenant_id, error=type(error).__name__)
            return False
        self._snapshot_store.replace(snapshot)
        log.info("snapshots.replaced", tenant_id=snapshot.tenant_id, version=snapshot.version)
        return True
