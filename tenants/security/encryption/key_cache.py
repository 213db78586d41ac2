"""The process's cache of unwrapped tenant keys. A KMS takes 10 to 50 ms to unwrap one.

Shredding takes effect despite this cache. A cached tenant key only unwraps a data key, whose row is
read from the database each time. The row of a shredded data key contains no wrapped key.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final
from uuid import UUID

# A key is removed from the cache after this time. A process therefore calls the KMS
# about once a minute for each tenant.
HOLD_S: Final = 60.0
MAX_HELD: Final = 10_000  # keys; the oldest is removed first


class KeyCache:
    """A thread-safe cache of tenant keys."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        # The unwrapped key and its time of expiry (monotonic seconds) by ID, oldest first.
        self._keys: OrderedDict[UUID, tuple[bytes, float]] = OrderedDict()
        self._lock = Lock()

    def get(self, key_id: UUID) -> bytes | None:
        with self._lock:
            self._evict_expired()
            entry = self._keys.get(key_id)
        if entry is None:
            return None
        key, _expires_at_s = entry
        return key

    def set(self, key_id: UUID, key: bytes) -> None:
        with self._lock:
            self._evict_expired()
            self._keys.pop(key_id, None)
            self._keys[key_id] = (key, self._monotonic_s() + HOLD_S)
            if len(self._keys) > MAX_HELD:
                self._keys.popitem(last=False)

    def remove(self, key_id: UUID) -> None:
        with self._lock:
            self._keys.pop(key_id, None)

    def _evict_expired(self) -> None:
        """Remove expired keys, including those that are not requested any more."""
        now_s = self._monotonic_s()
        while self._keys:
            _key, expires_at_s = next(iter(self._keys.values()))  # of the oldest entry
            if expires_at_s > now_s:
                return
            self._keys.popitem(last=False)


key_cache: Final = KeyCache()
