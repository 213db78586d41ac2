"""Follows which replicas operators have drained: at once by pub/sub, and by polling a counter, as a
published message can be missed."""

import asyncio
from typing import Any, Final, cast

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from caret.contracts.draining import DRAINS, DRAINS_CHANGED, DRAINS_VERSION
from inference.pools.replicas import Replicas

POLL_S: Final = 0.5
log = structlog.get_logger(__name__)


class DrainFeed:
    def __init__(self, redis: Redis, replicas: Replicas) -> None:
        self._redis = redis
        self._replicas = replicas
        self._seen: bytes | str | None = None  # the version

    async def begin(self) -> None:
        """The first look, before anything is asked of a replica. Where Redis is away there are no
        snapshots either, hence no requests; `run` catches up."""
        try:
            await self.sync()
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("drains.unreachable", error=type(error).__name__)

    async def run(self) -> None:
        """Runs until cancelled; Redis may go away and come back."""
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(DRAINS_CHANGED)
                    await self._follow(pubsub)
            except (RedisError, OSError, TimeoutError) as error:
                log.warning("drains.unreachable", error=type(error).__name__)
                await asyncio.sleep(POLL_S)

    async def _follow(self, pubsub: PubSub) -> None:
        while True:
            await self.sync()
            await pubsub.get_message(timeout=POLL_S)

    async def sync(self) -> None:
        """One look at Redis; raises RedisError when it cannot be reached."""
        version = await self._redis.get(DRAINS_VERSION)
        # None: nothing was ever drained, or Redis has lost its memory. What is drained stays so;
        # the count begins anew, so that a number seen before says nothing any more.
        if version is None:
            self._seen = None
            return
        if version == self._seen:
            return
        # Read after the version: what is newer than it is read once more with the next look.
        names = cast("list[bytes]", await cast(Any, self._redis.hkeys(DRAINS)))
        self._replicas.drain(name.decode("utf-8", "replace") for name in names)
        self._seen = version
