"""Newest wins across gateways: claims travel by Redis's pub/sub, many in a message.

A claim that is lost costs an engine a stale request's work, nothing else. So the queue is bounded
and drops its oldest, a Redis that is away is not waited for, and a gateway that hears from Redis
that nobody else listens stays quiet for a second.
"""

import asyncio
import secrets
from collections import deque
from typing import Any, Final, cast

import msgspec
import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from inference.gateway.supersession.registry import RequestClaim, SupersessionRegistry

CHANNEL: Final = "caret:supersession"
MAX_QUEUED: Final = 1_000
_GATHER_S: Final = 0.005  # claims go together; so much later a stale request ends
_QUIET_S: Final = 1.0
_RETRY_S: Final = 0.25
_POLL_S: Final = 1.0
log = structlog.get_logger(__name__)


class ClaimBatch(msgspec.Struct, frozen=True, array_like=True):
    """A message."""

    gateway: bytes  # who sent it, so that it does not listen to itself
    claims: list[RequestClaim]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ClaimBatch).decode


class ClaimQueue:
    """The Announcer: what is to be sent, the newest kept."""

    def __init__(self) -> None:
        self._claims: deque[RequestClaim] = deque(maxlen=MAX_QUEUED)
        self._has_some = asyncio.Event()

    def publish(self, claim: RequestClaim) -> None:
        self._claims.append(claim)
        self._has_some.set()

    async def wait_for_claim(self) -> None:
        await self._has_some.wait()

    def drain(self) -> list[RequestClaim]:
        claims = list(self._claims)
        self._claims.clear()
        self._has_some.clear()
        return claims


class SupersessionFeed:
    def __init__(self, redis: Redis, queue: ClaimQueue, newest: SupersessionRegistry) -> None:
        self._redis = redis
        self._queue = queue
        self._newest = newest
        self._gateway = secrets.token_bytes(8)

    async def run(self) -> None:
        """Runs until cancelled; Redis may go away and come back."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publish_claims())
            tasks.create_task(self._listen())

    async def _publish_claims(self) -> None:
        while True:
            await self._queue.wait_for_claim()
            await asyncio.sleep(_GATHER_S)
            message = _encode(ClaimBatch(self._gateway, self._queue.drain()))
            try:
                num_listeners = await cast(Any, self._redis.publish(CHANNEL, message))
            except (RedisError, OSError, TimeoutError):
                num_listeners = 0  # `_listen` says so in the log
            if num_listeners <= 1:
                await asyncio.sleep(_QUIET_S)
                self._queue.drain()

    async def _listen(self) -> None:
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(CHANNEL)
                    await self._follow(pubsub)
            except (RedisError, OSError, TimeoutError) as error:
                log.warning("supersession.redis_unreachable", error=type(error).__name__)
                await asyncio.sleep(_RETRY_S)

    async def _follow(self, pubsub: PubSub) -> None:
        while True:
            message = await pubsub.get_message(timeout=_POLL_S)
            if message is not None:
                self._on_message(message["data"])

    def _on_message(self, data: bytes) -> None:
        try:
            heard = _decode(data)
        except msgspec.MsgspecError as error:  # of another version, while gateways are replaced
            log.warning("supersession.invalid_message", error=type(error).__name__)
            return
        if heard.gateway != self._gateway:
            for claim in heard.claims:
                self._newest.on_remote_claim(claim)
