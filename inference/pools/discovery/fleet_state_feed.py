"""Follows the state that operators set for the fleet, in Redis.

Pub/sub announces changes at once. A polled counter covers messages that were missed.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import ClassVar, Final

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

POLL_S: Final = 0.5
log = structlog.get_logger(__name__)


class SteeringFeed(ABC):
    name: ClassVar[str]  # in logs
    version: ClassVar[str]  # key of the counter
    channel: ClassVar[str]

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._seen: bytes | str | None = None  # the last version

    @abstractmethod
    async def apply_state(self) -> None:
        """Read the whole state and apply it. May raise RedisError."""

    async def start(self) -> None:
        """Read the state once before any replica is used.

        If Redis is unreachable there are no snapshots and thus no requests; `run` reads the state
        later.
        """
        try:
            await self.sync()
        except (RedisError, OSError, TimeoutError) as error:
            self._log_unreachable(error)

    async def run(self) -> None:
        """Follow the state until cancelled. Survives outages of Redis."""
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(self.channel)
                    await self._follow(pubsub)
            except (RedisError, OSError, TimeoutError) as error:
                self._log_unreachable(error)
                await asyncio.sleep(POLL_S)

    async def sync(self) -> None:
        """Read Redis once, if the version changed. Raises RedisError."""
        version = await self._redis.get(self.version)
        # None: nothing was ever set, or Redis lost its data. The state stays as it is. The counter
        # starts again, so an earlier number must not count as seen.
        if version is None:
            self._seen = None
            return
        if version == self._seen:
            return
        # The state is read after the version, so a newer change is read again next time.
        await self.apply_state()
        self._seen = version

    async def _follow(self, pubsub: PubSub) -> None:
        while True:
            await self.sync()
            await pubsub.get_message(timeout=POLL_S)

    def _log_unreachable(self, error: Exception) -> None:
        log.warning("fleet_state.redis_unreachable", by=self.name, error=type(error).__name__)
