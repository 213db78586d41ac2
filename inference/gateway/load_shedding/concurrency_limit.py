"""Seats: places among the completions that run at once, of a tenant and of the whole gateway.

Without one the client is refused at once: waiting is for engines' queues.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from caret.foundation.ids import TenantId
from inference.errors import TooManyRequests

MAX_TENANT_SHARE: Final = 0.25


class ConcurrencyLimiter:
    """Counts the completions under way. One event loop uses it, so it needs no lock."""

    def __init__(self, *, max_total: int, max_tenant_share: float = MAX_TENANT_SHARE) -> None:
        """`max_tenant_share`: whatever its own policy says, one tenant leaves room for others."""
        self._max_total = max_total
        self._max_of_one = max(1, int(max_total * max_tenant_share))
        self._taken: Counter[TenantId] = Counter()

    @property
    def num_in_flight(self) -> int:
        return self._taken.total()

    @contextmanager
    def acquire(self, tenant_id: TenantId, *, max_of_tenant: int) -> Iterator[None]:
        """Raises Busy: `too_many_requests`, `gateway_at_capacity`."""
        if self._taken[tenant_id] >= min(max_of_tenant, self._max_of_one):
            raise TooManyRequests(
                "too_many_requests", "Too many completions of this tenant are under way."
            )
        if self._taken.total() >= self._max_total:
            raise TooManyRequests("gateway_at_capacity", "The gateway is full.", http_status=503)
        self._taken[tenant_id] += 1
        try:
            yield
        finally:
            self._taken[tenant_id] -= 1
            if not self._taken[tenant_id]:
                del self._taken[tenant_id]
