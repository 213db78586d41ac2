"""Uploads: the bytes of bodies that are on their way, which have to be kept until the last is here.

Who sends a body halfway and waits holds that half until its time is over. So they are bounded: of a
key, of a tenant, whose keys may be many, and of the whole gateway.
"""

from collections import Counter
from typing import Final

from caret.foundation.ids import KeyId, TenantId
from inference.completion.request import Principal
from inference.errors import TooManyRequests

_MB: Final = 1024 * 1024
MAX_OF_KEY_BYTES: Final = 32 * _MB  # four of the largest bodies, hundreds of usual ones
MAX_OF_TENANT_BYTES: Final = 64 * _MB  # a quarter of all, as with the seats
MAX_TOTAL_BYTES: Final = 256 * _MB
_Owner = tuple[TenantId, KeyId | None]  # None: all of the tenant's keys


class BodyQuota:
    """One event loop uses it, so it needs no lock."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self._of: Counter[_Owner] = Counter()

    def reserve(self, principal: Principal, num_bytes: int) -> None:
        """Raises Busy: `too_many_requests`, `gateway_at_capacity`; nothing has grown then."""
        key, tenant = _owners(principal)
        is_over_key = self._of[key] + num_bytes > MAX_OF_KEY_BYTES
        if is_over_key or self._of[tenant] + num_bytes > MAX_OF_TENANT_BYTES:
            whose = "key" if is_over_key else "tenant"
            raise TooManyRequests(
                "too_many_requests", f"Too much of this {whose}'s bodies is on its way."
            )
        if self.num_bytes + num_bytes > MAX_TOTAL_BYTES:
            raise TooManyRequests("gateway_at_capacity", "The gateway is full.", http_status=503)
        self._add(principal, num_bytes)

    def release(self, principal: Principal, num_bytes: int) -> None:
        """Once they are whole, or given up."""
        self._add(principal, -num_bytes)

    def _add(self, principal: Principal, num_bytes: int) -> None:
        self.num_bytes += num_bytes
        for owner in _owners(principal):
            self._of[owner] += num_bytes
            if not self._of[owner]:
                del self._of[owner]


def _owners(principal: Principal) -> tuple[_Owner, _Owner]:
    tenant_id = principal.snapshot.tenant_id
    return (tenant_id, principal.credential.key_id), (tenant_id, None)
