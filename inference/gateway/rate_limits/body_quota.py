"""A quota for request bodies that are being received, because they are kept in memory.

A client that stops halfway through a body occupies memory until the timeout. So the bytes are
limited for each key, for each tenant (which may have many keys) and for the gateway.
"""

from collections import Counter
from typing import Final

from caret.foundation.ids import KeyId, TenantId
from inference.completion.request import Principal
from inference.errors import TooManyRequests

_MB: Final = 1024 * 1024
MAX_OF_KEY_BYTES: Final = 32 * _MB  # four of the largest bodies, hundreds of usual ones
MAX_OF_TENANT_BYTES: Final = 64 * _MB  # a quarter of the total, as with concurrency slots
MAX_TOTAL_BYTES: Final = 256 * _MB
_Owner = tuple[TenantId, KeyId | None]  # None: all keys of the tenant


class BodyQuota:
    """The bytes of all incomplete bodies. Used on one event loop only, so it needs no lock."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self._bytes_of_owner: Counter[_Owner] = Counter()

    def reserve(self, principal: Principal, num_bytes: int) -> None:
        """Reserve all the bytes, or raise an error and reserve none.

        The codes of TooManyRequests are `too_many_requests` and `gateway_at_capacity`. Raises
        TooManyRequests.
        """
        key, tenant = _owners_of(principal)
        is_over_key = self._bytes_of_owner[key] + num_bytes > MAX_OF_KEY_BYTES
        if is_over_key or self._bytes_of_owner[tenant] + num_bytes > MAX_OF_TENANT_BYTES:
            scope = "key" if is_over_key else "tenant"
            raise TooManyRequests(
                "too_many_requests", f"This {scope} is uploading too much at once."
            )
        if self.num_bytes + num_bytes > MAX_TOTAL_BYTES:
            raise TooManyRequests(
                "gateway_at_capacity",
                "The gateway receives as many requests as it can. Try again.",
                http_status=503,
            )
        self._add_bytes(principal, num_bytes)

    def release(self, principal: Principal, num_bytes: int) -> None:
        """Release the bytes once the body is complete or abandoned."""
        self._add_bytes(principal, -num_bytes)

    def _add_bytes(self, principal: Principal, num_bytes: int) -> None:
        self.num_bytes += num_bytes
        for owner in _owners_of(principal):
            self._bytes_of_owner[owner] += num_bytes
            if not self._bytes_of_owner[owner]:
                del self._bytes_of_owner[owner]


def _owners_of(principal: Principal) -> tuple[_Owner, _Owner]:
    """Return the key and its tenant, as owners of bytes."""
    tenant_id = principal.snapshot.tenant_id
    return (tenant_id, principal.credential.key_id), (tenant_id, None)
