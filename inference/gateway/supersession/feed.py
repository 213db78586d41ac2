"""Supersession across gateways: a newer request cancels the user's older one for the same file.

A claim says that a user has sent a newer request for a file. Gateways send each other their claims
over Redis pub/sub, many in one message, so that the gateway with the older request cancels it. A
lost claim is acceptable: an engine then works for a stale request. So the queue is bounded and
drops its oldest claims. No request waits while Redis is unavailable. If no other gateway listens, a
gateway pauses for a second and drops its claims.
"""

import asyncio
import secrets
from collections import deque
from typing import Any, Final, cast

import msgspec
import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from inference.gateway.supersession.registry import RequestClaim, SupersessionRegistry
from inference.redis_subscription import RedisSubscription

CHANNEL: Final = "caret:supersession"
MAX_QUEUED: Final = 1_000  # claims
_BATCH_S: Final = 0.005  # claims are batched for this long, which delays the end of stale requests
_PAUSE_S: Final = 1.0  # while no other gateway listens
_RETRY_S: Final = 0.25
_POLL_S: Final = 1.0
log = structlog.get_logger(__name__)


class ClaimBatch(msgspec.Struct, frozen=True, array_like=True):
    """A message with the claims of one gateway."""

    gateway: bytes  # random ID of the sender: a gateway ignores its own messages
    claims: list[RequestClaim]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ClaimBatch).decode


class ClaimQueue:
    """A bounded queue of claims to send. The registry uses it as its ClaimPublisher."""

    def __init__(self) -> None:
        self._claims: deque[RequestClaim] = deque(maxlen=MAX_QUEUED)
        self._has_claims = asyncio.Event()

    def publish(self, claim: RequestClaim) -> None:
        self._claims.append(claim)
        self._has_claims.set()

    async def wait_for_claim(self) -> None:
        await self._has_claims.wait()

    def drain(self) -> list[RequestClaim]:
        """Remove and return all claims."""
        claims = list(self._claims)
        self._claims.clear()
        self._has_claims.clear()
        return claims


class SupersessionFeed:
    def __init__(self, redis: Redis, queue: ClaimQueue, registry: SupersessionRegistry) -> None:
        self._redis = redis
        self._queue = queue
        self._registry = registry
        self._gateway = secrets.token_bytes(8)

    async def run(self) -> None:
        """Send and receive claims until cancelled. Survives outages of Redis."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publish_claims())
            tasks.create_task(self._receive_claims())

    async def _publish_claims(self) -> None:
        while True:
            await self._queue.wait_for_claim()
            await asyncio.sleep(_BATCH_S)
            message = _encode(ClaimBatch(self._gateway, self._queue.drain()))
            try:
                num_listeners = await cast(Any, self._redis.publish(CHANNEL, message))
            except (RedisError, OSError, TimeoutError):
                num_listeners = 0  # `_receive_claims` logs the outage
            if num_listeners <= 1:  # this gateway listens, too
                await asyncio.sleep(_PAUSE_S)
                self._queue.drain()

    async def _receive_claims(self) -> None:
        subscription = RedisSubscription(self._redis, CHANNEL, poll_s=_POLL_S, retry_s=_RETRY_S)
        await subscription.follow(self._on_message, on_unreachable=_log_unreachable)

    async def _on_message(self, data: bytes | None) -> None:
        if data is None:
            return
        try:
            message = _decode(data)
        except msgspec.MsgspecError as error:  # another version, during a rolling update
            log.warning("supersession.invalid_message", error=type(error).__name__)
            return
        if message.gateway != self._gateway:
            for claim in message.claims:
                self._registry.on_remote_claim(claim)


def _log_unreachable(error: Exception) -> None:
    log.warning("supersession.redis_unreachable", error=type(error).__name__)
