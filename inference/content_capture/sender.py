"""Redacts secrets in content, and sends it to Redis in encrypted batches, each of one tenant.

Requests never wait for this.

If Redis is unreachable, content is dropped. If a user withdraws consent while content waits here,
the content is still sent. The worker that stores it checks the consent receipts and drops it.
"""

import asyncio
from collections import defaultdict
from typing import Any, Final, cast

import msgspec
import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from caret.contracts.captured_content import (
    CONTENT,
    MAX_BATCH_CHARS,
    MAX_QUEUED,
    TRIM_AGE_MS,
    CapturedCompletion,
    ChatTurn,
    ContentBatch,
    ContentSealer,
    Item,
)
from caret.contracts.sealed_message import ADD_SCRIPT, FIELD
from caret.foundation.ids import TenantId
from inference.content_capture.send_queue import ContentQueue
from inference.retrieval.redaction import redact_in_slices

GATHER_S: Final = 2.0  # wait for more items, so that a tenant's items share a batch
_PAUSE_S: Final = 1.0  # after an error of Redis
_NO_PATH: Final = ""  # redact without the rules of a file type
log = structlog.get_logger(__name__)


async def redact_content(item: Item) -> Item | None:
    """Return the redacted item; None if the cursor's line or the completion's lines have a secret.

    The secret may span the cursor. Redacting prefix, completion and suffix separately could then
    leave a part of it.
    """
    if not isinstance(item, CapturedCompletion):  # a CapturedSuggestionEdit: it has only one text
        return msgspec.structs.replace(item, text=await redact_in_slices(_NO_PATH, item.text))
    if await _has_secret_at_cursor(item):
        return None
    return msgspec.structs.replace(
        item,
        prefix=await redact_in_slices(item.path, item.prefix),
        suffix=await redact_in_slices(item.path, item.suffix),
        completion=await redact_in_slices(item.path, item.completion),
        chat=tuple(
            [ChatTurn(turn.role, await redact_in_slices(_NO_PATH, turn.text)) for turn in item.chat]
        ),
    )


async def _has_secret_at_cursor(item: CapturedCompletion) -> bool:
    """Return whether the cursor's line has a secret, without the completion or with it.

    The completion may turn this line into several lines.
    """
    before, after = item.prefix.rpartition("\n")[2], item.suffix.partition("\n")[0]
    completed_text = f"{before}{item.completion}{after}"
    lines = {before + after, *completed_text.split("\n")}
    # A private key has several lines. If the cursor is in the key, after its header line, this
    # function never gets the content: `capture_completion` has dropped it. If the cursor is inside
    # the header line ("-----BEGIN ..."), one of `lines` is the whole header line, so it is found.
    return any([await redact_in_slices(item.path, line) != line for line in lines if line.strip()])


class ContentSender:
    def __init__(self, redis: Redis, sealer: ContentSealer, queue: ContentQueue) -> None:
        self._redis = redis
        self._sealer = sealer
        self._queue = queue

    async def run(self) -> None:
        """Send content until cancelled. Content that is not sent by then is lost."""
        while True:
            try:
                await self._queue.wait_for_item()
                await asyncio.sleep(GATHER_S)
                await self.send_pending()
            except (RedisError, OSError, TimeoutError) as error:
                log.warning("content.redis_unreachable", error=type(error).__name__)
                self._queue.clear()
                await asyncio.sleep(_PAUSE_S)

    async def send_pending(self) -> None:
        """Send everything in the queue. Raises RedisError."""
        items_by_tenant = defaultdict[TenantId, list[Item]](list)
        while (entry := self._queue.dequeue()) is not None:
            tenant_id, item = entry
            if (redacted := await redact_content(item)) is not None:
                items_by_tenant[tenant_id].append(redacted)
        for tenant_id, items in items_by_tenant.items():
            for batch in split_into_batches(items):
                await self._append_to_stream(self._sealer.seal(tenant_id, batch))

    async def _append_to_stream(self, message: bytes) -> None:
        limits = (str(TRIM_AGE_MS), str(MAX_QUEUED))
        # 1: of the arguments, only CONTENT is a key of Redis.
        await cast(
            Any, self._redis.eval(ADD_SCRIPT, 1, CONTENT, cast(Any, message), FIELD, *limits)
        )


def split_into_batches(items: list[Item]) -> list[ContentBatch]:
    """Return batches in order, each of at most MAX_BATCH_CHARS, or with a single longer item."""
    batches, current, num_chars = list[ContentBatch](), list[Item](), 0
    for item in items:
        length = _count_chars(item)
        if current and num_chars + length > MAX_BATCH_CHARS:
            batches.append(ContentBatch(tuple(current)))
            current, num_chars = [], 0
        current.append(item)
        num_chars += length
    return [*batches, ContentBatch(tuple(current))] if current else batches


def _count_chars(item: Item) -> int:
    if not isinstance(item, CapturedCompletion):
        return len(item.text)
    chat = sum(len(turn.text) for turn in item.chat)
    return len(item.prefix) + len(item.suffix) + len(item.completion) + chat
