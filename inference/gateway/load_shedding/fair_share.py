"""Fair shares: near a pool's limit, its slots are divided equally among its tenants.

While no tenant is above its share, triggers decide: prefetches are admitted up to 50% of the limit,
automatic requests up to 90%, and manual requests up to 100%. But clients set the trigger
themselves: a tenant that marks all its requests as manual must not displace other tenants.

Rules that apply from 90% of the limit on, except to prefetches:
1. A share is the limit divided by the number of tenants with requests in flight, the requesting
   tenant included. It is at least one request.
2. A request of a tenant above its share is rejected.
3. While some tenant is above its share, a tenant below its own share is admitted with any trigger,
   up to the limit plus a small reserve. Without the reserve, the tenant would get no slot until
   requests of other tenants end.
"""

from collections import Counter
from typing import Final

from caret.contracts.policy import Trigger
from caret.foundation.ids import TenantId

# A request is admitted while fewer requests than this part of the limit are in flight.
_LIMIT_PARTS: Final = {Trigger.PREFETCH: 0.5, Trigger.AUTOMATIC: 0.9, Trigger.MANUAL: 1.0}
# The reserve above the limit is one request for each tenant, but at most this part of the limit
# (and at least one request): many small tenants together also overload a pool.
_MAX_RESERVE_PART: Final = 0.1


class FairShareLimiter:
    """The requests in flight in one pool, by tenant."""

    def __init__(self) -> None:
        self.num_in_flight = 0
        self._num_by_tenant: Counter[TenantId | None] = Counter()  # None: an unknown tenant

    def acquire(self, tenant_id: TenantId | None) -> None:
        self.num_in_flight += 1
        self._num_by_tenant[tenant_id] += 1

    def release(self, tenant_id: TenantId | None) -> None:
        self.num_in_flight -= 1
        self._num_by_tenant[tenant_id] -= 1
        if not self._num_by_tenant[tenant_id]:
            del self._num_by_tenant[tenant_id]

    def can_admit(self, tenant_id: TenantId | None, trigger: Trigger, limit: float) -> bool:
        """Return whether one more request is allowed. `limit` is the pool's limit of requests."""
        if trigger is Trigger.PREFETCH or not self._is_near(limit):
            return self._is_below(_LIMIT_PARTS[trigger] * limit)
        num_tenants = len(self._num_by_tenant.keys() | {tenant_id})
        share = max(1.0, limit / num_tenants)
        num_of_tenant = self._num_by_tenant[tenant_id]
        if num_of_tenant > share:
            return False
        is_any_above_share = max(self._num_by_tenant.values(), default=0) > share
        if is_any_above_share and num_of_tenant < share:
            reserve = min(num_tenants, max(1.0, _MAX_RESERVE_PART * limit))
            return self._is_below(limit + reserve)
        return self._is_below(_LIMIT_PARTS[trigger] * limit)

    def _is_near(self, limit: float) -> bool:
        return self.num_in_flight >= _LIMIT_PARTS[Trigger.AUTOMATIC] * limit

    def _is_below(self, num_requests: float) -> bool:
        """Return whether fewer requests are in flight. True if there are none at all."""
        return self.num_in_flight < max(1.0, num_requests)
