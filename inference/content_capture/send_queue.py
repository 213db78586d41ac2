"""A bounded queue of content to send. Content that does not fit is dropped."""

import asyncio
from collections import Counter, deque
from typing import Final

from caret.contracts.captured_content import Item
from caret.foundation.clock import Clock
from caret.foundation.ids import TenantId
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.suggestion_edit import SuggestionEdit
from inference.content_capture.capture import capture_completion, capture_suggestion_edit

# Each item has up to 24,000 characters of the request (prefix and suffix, or the chat), and a
# completion.
MAX_ITEMS: Final = 256
MAX_OF_TENANT: Final = 64  # items, so that one tenant does not block the others


class ContentQueue:
    """The items of all tenants, oldest first. Used on one event loop only.

    Adding a completion takes microseconds.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._items: deque[tuple[TenantId, Item]] = deque()
        self._num_items_by_tenant: Counter[TenantId] = Counter()
        self._is_filled = asyncio.Event()

    def on_completed(self, trace: RequestTrace) -> None:
        """Add the content of a completion, if it may be stored."""
        item = capture_completion(trace)
        if item is not None and trace.principal is not None:
            self._enqueue(trace.principal.snapshot.tenant_id, item)

    def on_edited(self, principal: Principal, suggestion_edit: SuggestionEdit) -> None:
        """Add a suggestion as the user edited it, if it may be stored."""
        item = capture_suggestion_edit(principal, suggestion_edit, now_ms=self._clock.now_ms())
        if item is not None:
            self._enqueue(principal.snapshot.tenant_id, item)

    def dequeue(self) -> tuple[TenantId, Item] | None:
        """Remove and return the oldest item with its tenant; None if the queue is empty."""
        if not self._items:
            self._is_filled.clear()
            return None
        tenant_id, item = self._items.popleft()
        self._num_items_by_tenant[tenant_id] -= 1
        if not self._num_items_by_tenant[tenant_id]:
            del self._num_items_by_tenant[tenant_id]
        return tenant_id, item

    async def wait_for_item(self) -> None:
        """Wait for an item.

        May return although the queue is empty, until `dequeue` has returned None.
        """
        await self._is_filled.wait()

    def clear(self) -> None:
        self._items.clear()
        self._num_items_by_tenant.clear()

    def _enqueue(self, tenant_id: TenantId, item: Item) -> None:
        is_full = (
            len(self._items) >= MAX_ITEMS or self._num_items_by_tenant[tenant_id] >= MAX_OF_TENANT
        )
        if is_full:
            return
        self._items.append((tenant_id, item))
        self._num_items_by_tenant[tenant_id] += 1
        self._is_filled.set()
