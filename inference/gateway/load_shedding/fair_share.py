"""Fair shares: near its limit a pool belongs to its tenants in equal parts.

What a request is asked for (its trigger) is the client's own claim, so it decides between one
tenant's requests, and between tenants only as long as none of them holds more than its part.

Rules, from the automatic requests' share of the limit on, except for prefetches:
1. A part is the limit by the number of tenants that have something under way, or now ask; at least
   one request.
2. Who holds more than its part is refused.
3. While somebody does, who holds less is let in whatever its trigger, up to the limit and a few
   more: else it would wait for the others' requests to end.
"""

from collections import Counter
from typing import Final

from caret.contracts.policy import Trigger
from caret.foundation.ids import TenantId

# Of the limit; what is left is room for those who come after.
_SHARES: Final = {Trigger.PREFETCH: 0.5, Trigger.AUTOMATIC: 0.9, Trigger.MANUAL: 1.0}
# Over the limit, one request for each tenant, but no more than this share: many small tenants are
# a crowd like any other.
_RESERVE: Final = 0.1


class FairShares:
    """Of one pool, by the requests under way there."""

    def __init__(self) -> None:
        self.num_in_flight = 0
        self._of: Counter[TenantId | None] = Counter()  # None: a tenant that is not known

    def acquire(self, tenant_id: TenantId | None) -> None:
        self.num_in_flight += 1
        self._of[tenant_id] += 1

    def release(self, tenant_id: TenantId | None) -> None:
        self.num_in_flight -= 1
        self._of[tenant_id] -= 1
        if not self._of[tenant_id]:
            del self._of[tenant_id]

    def can_admit(self, tenant_id: TenantId | None, trigger: Trigger, limit: float) -> bool:
        if trigger is Trigger.PREFETCH or not self._is_near(limit):
            return self._is_below(_SHARES[trigger] * limit)
        num_tenants = len(self._of.keys() | {tenant_id})
        part = max(1.0, limit / num_tenants)
        if self._of[tenant_id] > part:
            return False
        if self._of[tenant_id] < part < max(self._of.values(), default=0):
            return self._is_below(limit + min(num_tenants, max(1.0, _RESERVE * limit)))
        return self._is_below(_SHARES[trigger] * limit)

    def _is_near(self, limit: float) -> bool:
        return self.num_in_flight >= _SHARES[Trigger.AUTOMATIC] * limit

    def _is_below(self, num_requests: float) -> bool:
        return self.num_in_flight < max(1.0, num_requests)
