"""Keeps the authority's snapshots as new as Redis has them: at once by pub/sub, and by polling a
counter, since a published message can be missed."""

import asyncio
from typing import Any, Final, cast

import msgspec
import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from caret.contracts.snapshot import (
    CHANGED,
    CHANGES,
    HOME_HEARD,
    SNAPSHOTS,
    VERSIONS,
    decode_snapshot,
)
from caret.foundation.ids import TenantId
from inference.gateway.snapshots.snapshot_store import SnapshotStore

POLL_S: Final = 0.25  # a missed message delays a revocation by this much
log = structlog.get_logger(__name__)


class SnapshotFeed:
    def __init__(self, redis: Redis, authority: SnapshotStore, *, is_relayed: bool = False) -> None:
        """`is_relayed`: snapshots come here by a relay, from home."""
        self._is_relayed = is_relayed
        self._redis = redis
        self._authority = authority
        self._seen_changes: bytes | str | None = None

    async def run(self) -> None:
        """Runs until cancelled; Redis may go away and come back."""
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(CHANGED)
                    await self._follow(pubsub)
            except (RedisError, OSError, TimeoutError) as error:
                log.warning("snapshots.unreachable", error=type(error).__name__)
                self._seen_changes = None
                await asyncio.sleep(POLL_S)

    async def _follow(self, pubsub: PubSub) -> None:
        while True:
            await self.sync()
            await pubsub.get_message(timeout=POLL_S)

    async def sync(self) -> None:
        """One look at Redis; raises RedisError when it cannot be reached."""
        changes = await self._redis.get(CHANGES)
        if changes is None or changes != self._seen_changes:
            has_all = await self._read_newer()
            self._seen_changes = changes if has_all else None
        else:
            await self._mark_synced()

    async def _mark_synced(self) -> None:
        """What is here may be older than home has it, where a relay has not heard home for long."""
        if not self._is_relayed or await self._redis.exists(HOME_HEARD):
            self._authority.mark_synced()

    async def _read_newer(self) -> bool:
        """False when one of them could not be read, so that it is tried again."""
        hash_ = cast("dict[bytes, bytes]", await cast(Any, self._redis.hgetall(VERSIONS)))
        versions = {
            TenantId(key.decode()): int(value) for key, value in hash_.items() if value.isdigit()
        }
        held = self._authority.versions
        newer = [tenant for tenant, version in versions.items() if version > held.get(tenant, -1)]
        found = await cast(Any, self._redis.hmget(SNAPSHOTS, list(newer))) if newer else []
        taken = []
        for tenant, data in zip(newer, found, strict=True):
            taken.append(self._apply_snapshot(tenant, data))
            # Each is read on the event loop: whoever waits has his turn between two of them.
            await asyncio.sleep(0)
        # Redis that has lost its memory confirms nothing, until the control plane publishes anew.
        if held.keys() <= versions.keys():
            await self._mark_synced()
        return all(taken)

    def _apply_snapshot(self, tenant_id: TenantId, data: bytes | None) -> bool:
        try:
            snapshot = decode_snapshot(data or b"")
        except msgspec.MsgspecError as error:
            # A newer schema than ours, or damage: the tenant stays as it was until it is too old to
            # be trusted, the others go on.
            if self._authority.mark_unreadable(tenant_id):
                log.error("snapshots.unreadable", tenant_id=tenant_id, error=type(error).__name__)
            return False
        self._authority.replace(snapshot)
        log.info("snapshots.replaced", tenant_id=snapshot.tenant_id, version=snapshot.version)
        return True
