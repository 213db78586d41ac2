"""Ingestion of captured content: stores the content of users who consented, and drops the rest."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import redis
import structlog

from caret.contracts.captured_content import CONTENT, ContentBatch, ContentSealer, Item
from caret.contracts.sealed_message import TAKE_SCRIPT, UnreadableMessage, extract_sealed
from caret.foundation.ids import TenantId, UserId
from tenants.privacy.content_capture.operations import store_content
from tenants.security.encryption.errors import EncryptionFailed

# About 4 MB of text: most batches have at most 200,000 characters (MAX_BATCH_CHARS).
_BATCHES_PER_READ: Final = 20

logger = structlog.get_logger(__name__)


@dataclass(slots=True)
class ContentIngestion:
    """The result of one run."""

    num_stored: int = 0  # items
    # Items by reason. An unreadable batch counts as one item.
    dropped: dict[str, int] = field(default_factory=dict)

    def count_dropped(self, reason: str, num_items: int = 1) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + num_items


def ingest_content(
    connection: redis.Redis, sealer: ContentSealer, *, now: datetime
) -> ContentIngestion:
    """Ingest all content in the stream.

    Raises redis.RedisError, django.db.OperationalError, DecryptionFailed for a damaged encryption
    key, and the exceptions of the storage. Content that was removed from the stream and not yet
    stored is then lost.
    """
    result = ContentIngestion()
    while messages := _dequeue_messages(connection):
        for (tenant_id, user_id), items in _group_items_by_user(sealer, messages, result).items():
            _store_items(tenant_id, user_id, items, result, now)
    if result.num_stored or result.dropped:
        logger.info("content.ingested", kept=result.num_stored, dropped=result.dropped)
    return result


def _dequeue_messages(connection: redis.Redis) -> list[bytes]:
    """Remove the oldest sealed batches from the stream, and return them."""
    entries: Any = connection.eval(TAKE_SCRIPT, 1, CONTENT, str(_BATCHES_PER_READ))
    return [extract_sealed(fields) for _, fields in entries]


def _group_items_by_user(
    sealer: ContentSealer, messages: list[bytes], result: ContentIngestion
) -> dict[tuple[TenantId, UserId], list[Item]]:
    """Decrypt the batches, and return their items. Count unreadable batches in `result`."""
    items_by_user = defaultdict[tuple[TenantId, UserId], list[Item]](list)
    for data in messages:
        try:
            tenant_id, batch = sealer.open(data, ContentBatch)
        except UnreadableMessage as error:
            result.count_dropped(f"unreadable: {error}")
            continue
        for item in batch.items:
            items_by_user[tenant_id, item.user_id].append(item)
    return items_by_user


def _store_items(
    tenant_id: TenantId,
    user_id: UserId,
    items: list[Item],
    result: ContentIngestion,
    now: datetime,
) -> None:
    """Store the items of one user. Count stored and dropped items in `result`."""
    try:
        num_stored = store_content(tenant_id=tenant_id, user_id=user_id, items=items, now=now)
    except EncryptionFailed as error:
        result.count_dropped(type(error).__name__, len(items))
        return
    result.num_stored += num_stored
    if num_stored < len(items):
        result.count_dropped("no consent", len(items) - num_stored)
