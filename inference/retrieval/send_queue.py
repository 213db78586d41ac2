"""A bounded queue of files and queries to send, with the time after which each may be sent again.

A message that does not fit into the queue does not count as sent, so the next request queues it.
"""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass
from typing import Final

from caret.contracts.retrieval import RetrievalScope
from caret.foundation.clock import Clock
from caret.foundation.ids import TenantId
from inference.retrieval.snippet_cache import FileKey
from inference.retrieval.tenant_lru import TenantLru

MAX_FILES: Final = 64  # of MAX_FILE_CHARS each: 3 MB
MAX_QUERIES: Final = 256
MAX_TENANT_SHARE: Final = 0.25  # of each limit, so that one tenant does not block the others
MAX_SCHEDULES: Final = 25_000  # stored times of files, and as many of queries
# After a file or query was sent, it is not sent again for this time.
FILE_EVERY_S: Final = 120.0
QUERY_EVERY_S: Final = 60.0
# The pause before a query without a result is sent again. It doubles each time. The result was
# empty, perhaps because the files are not indexed yet, or it did not arrive.
FIRST_RETRY_PAUSE_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    key: FileKey
    tenant_id: TenantId
    scope: RetrievalScope
    is_query: bool
    text: str  # the file's text; for a query, the text around the cursor


@dataclass(slots=True)
class _ResendSchedule:
    due_s: float = 0.0  # monotonic; the message may be sent again after this time
    pause_s: float = FIRST_RETRY_PAUSE_S / 2  # the last pause before a retry; doubled before use


class SendQueue:
    """The queue of one gateway. Used on one event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._files: deque[OutgoingMessage] = deque()
        self._queries: deque[OutgoingMessage] = deque()
        self._num_queued: Counter[tuple[TenantId, bool]] = Counter()  # by tenant and is_query
        self._file_schedules = TenantLru[FileKey, _ResendSchedule](max_items=MAX_SCHEDULES)
        self._query_schedules = TenantLru[FileKey, _ResendSchedule](max_items=MAX_SCHEDULES)
        self._is_filled = asyncio.Event()

    def is_due(self, key: FileKey, *, is_query: bool) -> bool:
        """Return whether the file, or the query for it, may be sent now."""
        schedule = self._schedules_for(is_query=is_query).get(key)
        return schedule is None or schedule.due_s <= self._clock.monotonic_s()

    def enqueue(self, message: OutgoingMessage) -> None:
        """Queue the message if there is room. It is then not due for a while."""
        counted_as = message.tenant_id, message.is_query
        queue, limit = self._queue_for(is_query=message.is_query)
        if len(queue) >= limit or self._num_queued[counted_as] >= int(limit * MAX_TENANT_SHARE):
            return
        queue.append(message)
        self._num_queued[counted_as] += 1
        self._postpone(message)
        self._is_filled.set()

    def schedule_retry(self, key: FileKey) -> None:
        """Let the query be sent again earlier, because its result was empty or did not arrive."""
        schedule = self._query_schedules.get(key)
        if schedule is not None:
            schedule.pause_s = min(schedule.pause_s * 2, QUERY_EVERY_S)
            schedule.due_s = self._clock.monotonic_s() + schedule.pause_s

    def reset_files(self, scope: tuple[str, str]) -> None:
        """Mark the files of this namespace and repository as due again."""
        self._file_schedules.remove_scope(scope)

    def _postpone(self, message: OutgoingMessage) -> None:
        schedules = self._schedules_for(is_query=message.is_query)
        schedule = schedules.get(message.key) or _ResendSchedule()
        interval_s = QUERY_EVERY_S if message.is_query else FILE_EVERY_S
        schedule.due_s = self._clock.monotonic_s() + interval_s
        schedules.set(message.key, schedule)

    def dequeue(self) -> OutgoingMessage | None:
        """Remove and return the next message; None if there is none.

        Queries come first, because users are editing their files now.
        """
        queue = self._queries or self._files
        if not queue:
            self._is_filled.clear()
            return None
        message = queue.popleft()
        counted_as = message.tenant_id, message.is_query
        self._num_queued[counted_as] -= 1
        if not self._num_queued[counted_as]:
            del self._num_queued[counted_as]
        return message

    async def wait_for_message(self, *, timeout_s: float) -> None:
        """Wait until the queue is not empty, or for the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._is_filled.wait()
        except TimeoutError:
            pass

    def clear(self) -> None:
        """Drop all messages and times. Later requests queue the messages again."""
        self._files.clear()
        self._queries.clear()
        self._num_queued.clear()
        self._file_schedules.clear()
        self._query_schedules.clear()

    def _schedules_for(self, *, is_query: bool) -> TenantLru[FileKey, _ResendSchedule]:
        return self._query_schedules if is_query else self._file_schedules

    def _queue_for(self, *, is_query: bool) -> tuple[deque[OutgoingMessage], int]:
        return (self._queries, MAX_QUERIES) if is_query else (self._files, MAX_FILES)
