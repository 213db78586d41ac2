"""Runs a KV event feed for each replica that publishes events and whose pool has other replicas.

If a pool has only one replica, routing has no choice, so the replica's events are not needed. Feeds
start and stop when replicas join and leave pools.
"""

import asyncio
from typing import Final

import structlog

from caret.foundation.log_config import describe
from inference.pools.pool_config import PoolConfig, Replica
from inference.prefix_cache.cache_index import PrefixCacheIndex
from inference.prefix_cache.kv_event_feed import KvEventFeed, KvEventPublication

CHECK_INTERVAL_S: Final = 1.0  # between two searches for replicas that joined or left
_RESTART_DELAY_S: Final = 1.0  # after an unexpected error in a feed
log = structlog.get_logger(__name__)


class KvEventFeeds:
    """The feeds of one gateway. They keep `index` up to date."""

    def __init__(self, pools: PoolConfig, index: PrefixCacheIndex) -> None:
        self._pools = pools
        self._index = index

    async def run(self) -> None:
        """Start and stop feeds until cancelled. A stopped feed's replica leaves the index."""
        feeds: dict[Replica, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                publishers = {
                    replica
                    for replica in self._pools.list_replicas(min_replicas=2)
                    if replica.kv_events
                }
                for replica in feeds.keys() - publishers:
                    feeds.pop(replica).cancel()
                    self._index.remove_replica(replica.url)
                for replica in publishers - feeds.keys():
                    feeds[replica] = group.create_task(self._follow_replica(replica))
                await asyncio.sleep(CHECK_INTERVAL_S)

    async def _follow_replica(self, replica: Replica) -> None:
        """Run one feed, and restart it after an unexpected error. Other feeds are not affected."""
        assert replica.kv_events is not None
        publication = KvEventPublication(
            replica.name, events=replica.kv_events, replay=replica.kv_replay
        )
        feed = KvEventFeed(publication, self._index.add_replica(replica.url))
        while True:
            try:
                await feed.run()
            except Exception as defect:  # noqa: BLE001  # the edge of a background task
                log.error("background.internal_error", task="kv_events", **describe(defect))
                await asyncio.sleep(_RESTART_DELAY_S)
