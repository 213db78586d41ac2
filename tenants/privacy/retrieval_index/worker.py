"""The retrieval worker: answers queries of gateways, and indexes files in between.

A run is short, so that the worker has time for other tasks. Another run is scheduled each second.
Queries come first, because a user is waiting. Messages that cannot be handled are dropped, and
their number is logged by reason. If the engine fails, all queries of a batch count as one message.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar

import structlog

from caret.contracts.retrieval import (
    FILES,
    MAX_QUERY_CHARS,
    QUERIES,
    FileUpload,
    Message,
    RetrievalSealer,
    SnippetQuery,
    SnippetResult,
)
from caret.contracts.sealed_message import UnreadableMessage
from caret.foundation.clock import Clock, from_unix_ms
from caret.foundation.ids import TenantId
from tenants.base.errors import NotFound
from tenants.privacy.retrieval_index.embeddings import MAX_TEXTS, Embedder, EmbeddingFailed
from tenants.privacy.retrieval_index.operations import index_file, record_matches
from tenants.privacy.retrieval_index.queries import find_indexing_rules, search_chunks
from tenants.privacy.retrieval_index.redis_streams import RetrievalStreams

MAX_RUN_S: Final = 2.0
MessageType = TypeVar("MessageType", bound=Message)

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """The dependencies of a run."""

    streams: RetrievalStreams
    sealer: RetrievalSealer
    embedder: Embedder
    clock: Clock

    @property
    def now(self) -> datetime:
        return from_unix_ms(self.clock.now_ms())


@dataclass(slots=True)
class RunStats:
    queries: int = 0  # answered
    files: int = 0  # indexed, or left out because the policy does not allow them
    chunks: int = 0  # new chunks of these files
    dropped: dict[str, int] = field(default_factory=dict)  # messages by reason

    def count_dropped(self, reason: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    @property
    def is_empty(self) -> bool:
        return not (self.queries or self.files or self.dropped)


def run_worker(context: WorkerContext, *, max_run_s: float = MAX_RUN_S) -> RunStats:
    """Handle messages until none is left, the engine fails, or `max_run_s` has passed.

    A batch that was begun is finished. Raises redis.RedisError and django.db.OperationalError.
    """
    stats = RunStats()
    end_s = context.clock.monotonic_s() + max_run_s
    while context.clock.monotonic_s() < end_s and _serve_messages(context, stats):
        pass
    if not stats.is_empty:
        logger.info(
            "retrieval.served",
            queries=stats.queries,
            files=stats.files,
            chunks=stats.chunks,
            dropped=stats.dropped,
        )
    return stats


def _serve_messages(context: WorkerContext, stats: RunStats) -> bool:
    """Handle some messages. Return False if there are none, or the engine fails."""
    try:
        if messages := context.streams.dequeue(QUERIES, count=MAX_TEXTS):
            _answer_queries(
                context, list(_open_messages(context, messages, SnippetQuery, stats)), stats
            )
        elif messages := context.streams.dequeue(FILES, count=1):
            for tenant_id, upload in _open_messages(context, messages, FileUpload, stats):
                _index_file(context, tenant_id, upload, stats)
    except EmbeddingFailed as error:
        # End this run, so that other tasks of the worker need not wait for a broken engine. The
        # next run reads new messages.
        stats.count_dropped(f"no embeddings: {error}")
        return False
    return bool(messages)


def _open_messages(
    context: WorkerContext, messages: list[bytes], kind: type[MessageType], stats: RunStats
) -> Iterator[tuple[TenantId, MessageType]]:
    for data in messages:
        try:
            yield context.sealer.open(data, kind)
        except UnreadableMessage as error:
            stats.count_dropped(f"unreadable: {error}")


def _answer_queries(
    context: WorkerContext, queries: list[tuple[TenantId, SnippetQuery]], stats: RunStats
) -> None:
    allowed_queries = [query for query in queries if _accept_query(*query, stats)]
    texts = [f"{query.path}\n{query.text[:MAX_QUERY_CHARS]}" for _, query in allowed_queries]
    vectors = context.embedder.embed(texts)
    for (tenant_id, query), vector in zip(allowed_queries, vectors, strict=True):
        matches = search_chunks(tenant_id=tenant_id, query=query, vector=vector)
        result = SnippetResult(query.query_id, tuple(match.snippet for match in matches))
        context.streams.send_result(query.gateway, context.sealer.seal(tenant_id, result))
        record_matches(
            tenant_id=tenant_id, chunk_ids=[match.chunk_id for match in matches], now=context.now
        )
        stats.queries += 1


def _accept_query(tenant_id: TenantId, query: SnippetQuery, stats: RunStats) -> bool:
    """Return whether the query may be answered. If not, count it as dropped.

    Called before any text is sent to the engine.
    """
    try:
        rules = find_indexing_rules(tenant_id=tenant_id)
    except NotFound:
        stats.count_dropped("unknown tenant")
        return False
    if not rules.allows_file(query.scope, query.path):
        stats.count_dropped("not allowed")
        return False
    return True


def _index_file(
    context: WorkerContext, tenant_id: TenantId, upload: FileUpload, stats: RunStats
) -> None:
    try:
        stats.chunks += index_file(
            tenant_id=tenant_id, upload=upload, embedder=context.embedder, now=context.now
        )
    except NotFound:
        stats.count_dropped("unknown tenant")
    else:
        stats.files += 1
