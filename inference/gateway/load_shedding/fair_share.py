"""Fair shares: near its limit, a pool is divided equally among its tenants.

Clients set the trigger of a request themselves. It therefore ranks the requests of one tenant, and
ranks tenants against each other only while none of them is above its share.

Rules that apply once a pool is near its limit, except to prefetches:
1. A share is the limit divided by the number of tenants with requests in flight, the requesting
   tenant included; at least one request.
2. A tenant above its share is rejected.
3. While some tenant is above its share, tenants below theirs are admitted whatever the trigger, up
   to the limit and a small reserve. Otherwise they would wait for the others' requests to end.
"""

from collections import Counter
from typing import Final

from caret.contracts.policy import Trigger
from caret.foundation.ids import TenantId

# Of the limit; the rest is room for requests of higher priority.
_SHARES: Final = {Trigger.PREFETCH: 0.5, Trigger.AUTOMATIC: 0.9, Trigger.MANUAL: 1.0}
# One request above the limit for each tenant, but at most this share of it: many small tenants
# together also overload a pool.
_RESERVE: Final = 0.1


class FairShareLimiter:
    """The requests in flight in one pool, by tenant."""

    def __init__(self) -> None:
        self.num_in_flight = 0
        self._of: Counter[TenantId | None] = Counter()  # None: an unknown tenant

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
