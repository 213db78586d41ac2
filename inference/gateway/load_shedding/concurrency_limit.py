"""The concurrency limit of each tenant and of the whole gateway.

A request that finds no free slot is rejected at once. Only engines queue requests.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from caret.foundation.ids import TenantId
from inference.errors import TooManyRequests

MAX_TENANT_SHARE: Final = 0.25  # of the gateway's slots


class ConcurrencyLimiter:
    """Counts the completions in flight. Used on one event loop only, so it needs no lock."""

    def __init__(self, *, max_total: int, max_tenant_share: float = MAX_TENANT_SHARE) -> None:
        """`max_total` is the gateway's number of slots.

        `max_tenant_share` of them limits each tenant, even if its policy allows more.
        """
        self._max_total = max_total
        self._max_per_tenant = max(1, int(max_total * max_tenant_share))
        self._num_slots_in_use: Counter[TenantId] = Counter()

    @property
    def num_in_flight(self) -> int:
        return self._num_slots_in_use.total()

    @contextmanager
    def acquire(self, tenant_id: TenantId, *, max_of_tenant: int) -> Iterator[None]:
        """Hold a slot until the block ends. `max_of_tenant` is the limit of the tenant's policy.

        The codes of TooManyRequests are `too_many_requests` (tenant) and `gateway_at_capacity`.
        Raises TooManyRequests.
        """
        if self._num_slots_in_use[tenant_id] >= min(max_of_tenant, self._max_per_tenant):
            raise TooManyRequests(
                "too_many_requests", "This tenant has too many completions in flight."
            )
        if self._num_slots_in_use.total() >= self._max_total:
            raise TooManyRequests(
                "gateway_at_capacity",
                "The gateway serves as many completions as it can. Try again.",
                http_status=503,
            )
        self._num_slots_in_use[tenant_id] += 1
        try:
            yield
        finally:
            self._num_slots_in_use[tenant_id] -= 1
            if not self._num_slots_in_use[tenant_id]:
                del self._num_slots_in_use[tenant_id]
