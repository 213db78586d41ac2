"""Notifies open sockets when the access of their viewer may have changed.

Possible causes are the end of a session, and a change of a membership, role, policy or tenant
status.

A process has one listener while any socket is open. It can miss published messages. Therefore all
sockets also check their access after each new subscription in Redis, and periodically
(console.live_metrics.consumer.CHECK_EVERY_S).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog
from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from caret.contracts.snapshot import CHANGE_CHANNEL
from tenants.identity.members.access_changes import ACCESS_CHANGED

_RETRY_S: Final = 1.0
_PING_EVERY_S: Final = 15  # detects a connection that was cut silently
_TIMEOUT_S: Final = 2.0
logger = structlog.get_logger(__name__)


class AccessFeed:
    def __init__(self) -> None:
        # By session key, user ID or tenant ID.
        self._watchers: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._listener: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, *ids: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set at each change for one of the IDs.

        An ID is a session key, a user ID or a tenant ID. The event is already set at the start:
        earlier changes were missed, so the socket must check once.
        """
        change_event = asyncio.Event()
        change_event.set()
        for watched_id in ids:
            self._watchers[watched_id].add(change_event)
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
        try:
            yield change_event
        finally:
            self._remove_watcher(ids, change_event)

    def _remove_watcher(self, ids: tuple[str, ...], change_event: asyncio.Event) -> None:
        for watched_id in ids:
            self._watchers[watched_id].discard(change_event)
            if not self._watchers[watched_id]:
                del self._watchers[watched_id]
        if not self._watchers and self._listener is not None:
            self._listener.cancel()
            self._listener = None

    async def _listen(self) -> None:
        """Listen until cancelled. If the connection to Redis fails, connect again."""
        while True:
            try:
                async with Redis.from_url(
                    settings.REDIS_URL,
                    socket_connect_timeout=_TIMEOUT_S,
                    health_check_interval=_PING_EVERY_S,
                ) as connection:
                    await self._follow(connection)
            except (RedisError, OSError) as error:
                logger.warning("live.feed_unreachable", error=type(error).__name__)
            await asyncio.sleep(_RETRY_S)

    async def _follow(self, connection: Redis) -> None:
        """Subscribe, and set the events of published changes. Raises RedisError, OSError."""
        async with connection.pubsub() as pubsub:
            # Messages contain a session key or a user ID (ACCESS_CHANGED), or a tenant ID
            # (CHANGE_CHANNEL).
            await pubsub.subscribe(ACCESS_CHANGED, CHANGE_CHANNEL)
            while True:
                message = await pubsub.get_message(timeout=_PING_EVERY_S)
                if message is not None:
                    self._on_message(message)

    def _on_message(self, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":  # earlier changes were missed
            watchers = set().union(*self._watchers.values())
        else:
            watchers = self._watchers.get(message["data"].decode(), set())
        for change_event in watchers:
            change_event.set()
