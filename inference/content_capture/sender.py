"""Brings content to Redis, sealed, in batches of one tenant; requests never wait for it.

Redis may be away: what cannot be delivered is dropped. What has waited here while its user withdrew
is dropped by the worker, which asks the receipts again.
"""

import asyncio
from collections import defaultdict
from typing import Any, Final, cast

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from caret.contracts.captured_content import (
    CONTENT,
    MAX_BATCH_CHARS,
    MAX_QUEUED,
    STREAM_MS,
    CapturedCompletion,
    ContentBatch,
    ContentSealer,
    Item,
)
from caret.contracts.sealed_message import ADD_SCRIPT, FIELD
from caret.foundation.ids import TenantId
from inference.content_capture.redaction import redact_content
from inference.content_capture.send_queue import ContentQueue

GATHER_S: Final = 2.0  # so that a user's completions of a while become one object
_PAUSE_S: Final = 1.0
log = structlog.get_logger(__name__)


class ContentSender:
    def __init__(self, redis: Redis, sealer: ContentSealer, outbox: ContentQueue) -> None:
        self._redis = redis
        self._sealer = sealer
        self._outbox = outbox

    async def run(self) -> None:
        """Runs until cancelled; what is gathered at that moment is lost."""
        while True:
            try:
                await self._outbox.wait_for_item()
                await asyncio.sleep(GATHER_S)
                await self.send_pending()
            except (RedisError, OSError, TimeoutError) as error:
                log.warning("telemetry.unreachable", error=type(error).__name__)
                self._outbox.clear()
                await asyncio.sleep(_PAUSE_S)

    async def send_pending(self) -> None:
        """All that waits. Raises RedisError."""
        gathered = defaultdict[TenantId, list[Item]](list)
        while (taken := self._outbox.dequeue()) is not None:
            tenant_id, item = taken
            if (clean := await redact_content(item)) is not None:
                gathered[tenant_id].append(clean)
        for tenant_id, items in gathered.items():
            for batch in batches(items):
                await self._append_to_stream(self._sealer.seal(tenant_id, batch))

    async def _append_to_stream(self, sealed: bytes) -> None:
        limits = (str(STREAM_MS), str(MAX_QUEUED))
        await cast(Any, self._redis.eval(ADD_SCRIPT, 1, CONTENT, cast(Any, sealed), FIELD, *limits))


def batches(items: list[Item]) -> list[ContentBatch]:
    """In order, each of MAX_BATCH_CHARS at most, or of one item."""
    found, current, num_chars = list[ContentBatch](), list[Item](), 0
    for item in items:
        length = _num_chars(item)
        if current and num_chars + length > MAX_BATCH_CHARS:
            found.append(ContentBatch(tuple(current)))
            current, num_chars = [], 0
        current.append(item)
        num_chars += length
    return [*found, ContentBatch(tuple(current))] if current else found


def _num_chars(item: Item) -> int:
    if not isinstance(item, CapturedCompletion):
        return len(item.text)
    chat = sum(len(turn.text) for turn in item.chat)
    return len(item.prefix) + len(item.suffix) + len(item.completion) + chat
