"""Sends files and queries to Redis, and receives results. Requests never wait for Redis.

If Redis or the worker that processes the messages is down, messages are dropped. Later requests
send them again.
"""

import asyncio
import hashlib
import secrets
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any, Final, cast

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from caret.contracts.retrieval import (
    FILES,
    MAX_FILES_QUEUED,
    MAX_QUERIES_QUEUED,
    QUERIES,
    TRIM_AGE_MS,
    FileUpload,
    RetrievalScope,
    RetrievalSealer,
    SnippetQuery,
    SnippetResult,
    build_results_key,
)
from caret.contracts.sealed_message import ADD_SCRIPT, FIELD, UnreadableMessage
from caret.foundation.clock import Clock
from caret.foundation.ids import TenantId
from inference.completion.snippet import Snippet
from inference.context.sources.file_filter import is_context_file
from inference.retrieval.redaction import redact_in_slices
from inference.retrieval.send_queue import OutgoingMessage, SendQueue
from inference.retrieval.snippet_cache import FileKey, SnippetCache
from inference.retrieval.tenant_lru import MAX_SHARE, TenantLru

POLL_S: Final = 0.1  # between two reads of the results, while a query is pending
IDLE_S: Final = 5.0  # timeout of the wait for a message, while no query is pending
MAX_WAIT_S: Final = 30.0  # for the result of a query
# Unchanged files are sent again after this time, because the index may have lost or dropped them.
RESEND_S: Final = 600.0
_MAX_PENDING: Final = 1_000  # queries
_MAX_RESULTS: Final = 64  # received at once
_MAX_UPLOADS: Final = 50_000  # digests of uploaded files
_PAUSE_S: Final = 1.0  # after an error of Redis
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _PendingQuery:
    tenant_id: TenantId
    key: FileKey
    until_s: float  # monotonic; without a result, the query is dropped then


class RetrievalClient:
    def __init__(
        self,
        redis: Redis,
        sealer: RetrievalSealer,
        *,
        cache: SnippetCache,
        queue: SendQueue,
        clock: Clock,
    ) -> None:
        self._redis = redis
        self._sealer = sealer
        self._cache = cache
        self._queue = queue
        self._clock = clock
        self._gateway_id = secrets.token_hex(16)  # of this process; queries contain it
        self._secret = secrets.token_bytes(32)  # for the digests of files
        self._pending_queries: OrderedDict[str, _PendingQuery] = OrderedDict()  # by query_id
        # The digest of each uploaded file, and the time after which the file is sent again
        # (monotonic seconds).
        self._last_uploads = TenantLru[FileKey, tuple[bytes, float]](max_items=_MAX_UPLOADS)

    async def run(self) -> None:
        """Send messages and receive results until cancelled."""
        while True:
            try:
                await self._queue.wait_for_message(
                    timeout_s=POLL_S if self._pending_queries else IDLE_S
                )
                await self.send_pending()
                await self.receive_results()
            except (RedisError, OSError, TimeoutError) as error:
                log.warning("retrieval.unreachable", error=type(error).__name__)
                self._queue.clear()
                self._pending_queries.clear()
                self._last_uploads.clear()
                await asyncio.sleep(_PAUSE_S)
            self._cache.evict_expired()

    async def send_pending(self) -> None:
        """Send all messages of the queue, except files that are not due. Raises RedisError."""
        while (message := self._queue.dequeue()) is not None:
            if message.is_query:
                await self._send_query(message)
            elif self._claim_upload(message):
                await self._send_file(message)

    async def receive_results(self) -> None:
        """Cache the snippets of results that have arrived. Raises RedisError."""
        self._expire_pending()
        if not self._pending_queries:
            return
        results = await cast(
            Any, self._redis.lpop(build_results_key(self._gateway_id), _MAX_RESULTS)
        )
        for data in results or ():
            self._on_result(data)

    async def _send_file(self, message: OutgoingMessage) -> None:
        path, text = message.key.path, await redact_in_slices(message.key.path, message.text)
        file = FileUpload(
            scope=_clean_scope(message.scope), path=_clean_text(path), text=_clean_text(text)
        )
        await self._append_to_stream(FILES, message.tenant_id, file, max_entries=MAX_FILES_QUEUED)

    async def _send_query(self, message: OutgoingMessage) -> None:
        query = SnippetQuery(
            query_id=secrets.token_hex(8),
            gateway=self._gateway_id,
            scope=_clean_scope(message.scope),
            path=_clean_text(message.key.path),
            text=_clean_text(await redact_in_slices(message.key.path, message.text)),
        )
        await self._append_to_stream(
            QUERIES, message.tenant_id, query, max_entries=MAX_QUERIES_QUEUED
        )
        until_s = self._clock.monotonic_s() + MAX_WAIT_S
        self._pending_queries[query.query_id] = _PendingQuery(
            message.tenant_id, message.key, until_s
        )
        self._limit_pending(message.tenant_id)

    def _limit_pending(self, tenant_id: TenantId) -> None:
        """Drop a pending query if there are too many.

        If this tenant has more than its share, its oldest query is dropped. Otherwise, the oldest
        query of the tenant with the most queries is dropped.
        """
        counts = Counter(query.tenant_id for query in self._pending_queries.values())
        if counts[tenant_id] <= _MAX_PENDING * MAX_SHARE:
            if len(self._pending_queries) <= _MAX_PENDING:
                return
            ((tenant_id, _),) = counts.most_common(1)
        ids = (
            query_id
            for query_id, query in self._pending_queries.items()
            if query.tenant_id == tenant_id
        )
        del self._pending_queries[next(ids)]

    async def _append_to_stream(
        self,
        stream: str,
        tenant_id: TenantId,
        message: FileUpload | SnippetQuery,
        *,
        max_entries: int,
    ) -> None:
        data = self._sealer.seal(tenant_id, message)
        limits = (str(TRIM_AGE_MS), str(max_entries))
        await cast(Any, self._redis.eval(ADD_SCRIPT, 1, stream, cast(Any, data), FIELD, *limits))

    def _claim_upload(self, message: OutgoingMessage) -> bool:
        """Return whether to send the file. If so, store it as sent.

        A file is sent if it is suitable as context, and is new, changed or due again (RESEND_S).
        """
        if not is_context_file(message.key.path, message.text):
            return False
        data = message.text.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(data, key=self._secret, digest_size=16).digest()
        now_s = self._clock.monotonic_s()
        last_upload = self._last_uploads.get(message.key)
        if last_upload is not None:
            last_digest, resend_s = last_upload
            if last_digest == digest and resend_s > now_s:
                return False
        self._last_uploads.set(message.key, (digest, now_s + RESEND_S))
        return True

    def _on_result(self, data: bytes) -> None:
        try:
            tenant_id, result = self._sealer.open(data, SnippetResult)
        except UnreadableMessage as error:
            log.warning("retrieval.unreadable", reason=str(error))
            return
        query = self._pending_queries.pop(result.query_id, None)
        if query is None or query.tenant_id != tenant_id:
            return  # the result is too late, or for another tenant
        snippets = tuple(
            Snippet(snippet.path, snippet.text, snippet.score) for snippet in result.snippets
        )
        self._cache.store(query.key, snippets)
        if not snippets:
            self._queue.schedule_retry(query.key)

    def _expire_pending(self) -> None:
        """Drop queries whose results take too long. Let later requests send them again."""
        now_s = self._clock.monotonic_s()
        scopes = set()
        while self._pending_queries:
            query_id, query = next(iter(self._pending_queries.items()))
            if query.until_s > now_s:
                break
            del self._pending_queries[query_id]
            self._queue.schedule_retry(query.key)
            scopes.add(query.key.scope)
        for scope in scopes:
            self._reset_uploads(scope)

    def _reset_uploads(self, scope: tuple[str, str]) -> None:
        """Let later requests send the files of the scope again.

        Perhaps no worker is running, and the files were not indexed.
        """
        self._queue.reset_files(scope)
        self._last_uploads.remove_scope(scope)


def _clean_text(text: str) -> str:
    """Replace lone surrogates, which are valid in JSON but not in UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _clean_scope(scope: RetrievalScope) -> RetrievalScope:
    return RetrievalScope(holder=scope.holder, repository=_clean_text(scope.repository))
