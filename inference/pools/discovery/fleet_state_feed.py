"""Follows what operators steer gateways by in Redis: at once by pub/sub, and by polling a counter,
as a published message can be missed."""

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
    name: ClassVar[str]  # in the log
    version: ClassVar[str]  # the counter's key
    channel: ClassVar[str]

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._seen: bytes | str | None = None  # the version

    @abstractmethod
    async def apply_state(self) -> None:
        """Reads all of it and does what it says. May raise RedisError."""

    async def start(self) -> None:
        """The first look, before anything is asked of a replica. Where Redis is away there are no
        snapshots either, hence no requests; `run` catches up."""
        try:
            await self.sync()
        except (RedisError, OSError, TimeoutError) as error:
            self._log_unreachable(error)

    async def run(self) -> None:
        """Runs until cancelled; Redis may go away and come back."""
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(self.channel)
                    await self._follow(pubsub)
            except (RedisError, OSError, TimeoutError) as error:
                self._log_unreachable(error)
                await asyncio.sleep(POLL_S)

    async def sync(self) -> None:
        """One look at Redis; raises RedisError when it cannot be reached."""
        version = await self._redis.get(self.version)
        # None: nothing was ever said, or Redis has lost its memory. What is so stays so; the count
        # begins anew, so that a number seen before says nothing any more.
        if version is None:
            self._seen = None
            return
        if version == self._seen:
            return
        # Read after the version: what is newer than it is read once more with the next look.
        await self.apply_state()
        self._seen = version

    async def _follow(self, pubsub: PubSub) -> None:
        while True:
            await self.sync()
            await pubsub.get_message(timeout=POLL_S)

    def _log_unreachable(self, error: Exception) -> None:
        log.warning("fleet_state.redis_unreachable", by=self.name, error=type(error).__name__)
