"""A bulkhead: limits how many operations of this process run at once, per holder and in total.

A holder is any text, such as a tenant ID. If no slot is free, the operation fails at once. Waiting
for a slot would occupy the thread that the bulkhead protects.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class BulkheadFull(Exception):
    """All slots, or all slots of the holder, are occupied."""


class Bulkhead:
    def __init__(self, *, max_per_holder: int, max_total: int) -> None:
        self._max_per_holder = max_per_holder
        self._max_total = max_total
        self._slots_in_use: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def acquire(self, holder: str) -> Iterator[None]:
        """Occupy a slot until the block ends.

        Raises BulkheadFull.
        """
        with self._lock:
            if (
                self._slots_in_use[holder] >= self._max_per_holder
                or self._slots_in_use.total() >= self._max_total
            ):
                raise BulkheadFull
            self._slots_in_use[holder] += 1
        try:
            yield
        finally:
            with self._lock:
                self._slots_in_use[holder] -= 1
                self._slots_in_use += Counter()  # drops holders without a slot
