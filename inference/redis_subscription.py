"""Receives the messages of a Redis pub/sub channel, also after outages of Redis."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import RedisError


@dataclass(frozen=True, slots=True)
class RedisSubscription:
    redis: Redis
    channel: str
    poll_s: float  # timeout of the wait for a message
    retry_s: float  # pause before the next attempt while Redis is unreachable

    async def follow(
        self,
        handle: Callable[[bytes | None], Awaitable[None]],
        *,
        on_unreachable: Callable[[Exception], None],
    ) -> None:
        """Call `handle` with each message until cancelled.

        `handle` gets None after each subscription, because messages may have been missed. It also
        gets None each time no message came for `poll_s`. If Redis fails, also inside `handle`, the
        error is passed to `on_unreachable`. After `retry_s`, the channel is subscribed to again.
        """
        while True:
            try:
                await self._follow_connection(handle)
            except (RedisError, OSError, TimeoutError) as error:
                on_unreachable(error)
                await asyncio.sleep(self.retry_s)

    async def _follow_connection(self, handle: Callable[[bytes | None], Awaitable[None]]) -> None:
        async with self.redis.pubsub(ignore_subscribe_messages=True) as pubsub:
            await pubsub.subscribe(self.channel)
            await handle(None)
            while True:
                message = await pubsub.get_message(timeout=self.poll_s)
                await handle(None if message is None else message["data"])
