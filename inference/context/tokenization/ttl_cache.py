"""A TTL cache for results computed from customers' texts.

Rules:
1. In memory only. An entry lives at most twice LIFETIME_S after the last request that used it, plus
   the seconds until the next `evict_expired`. The engine's prefix cache has the same limits.
2. An entry is found only in its own partition (tenant, epoch, and in strict isolation the user):
   one tenant's texts never make requests of another measurably faster.
3. No partition uses more than a quarter of the cache, so none displaces all entries of another.
4. Keys are digests under a secret of this process. The texts themselves are not stored.

Each partition has two generations. Entries that are used move to the young one. The old one is
dropped as a whole.
"""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from typing import Final, Generic, NewType, TypeVar

from caret.foundation.clock import Clock
from inference.completion.request import Principal

LIFETIME_S: Final = 300.0
MAX_SHARE: Final = 0.25  # of one partition

PartitionKey = NewType("PartitionKey", bytes)
Digest = NewType("Digest", bytes)
Value = TypeVar("Value")


class CachePartitions:
    """Keys of partitions, valid only in this process."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def for_principal(self, principal: Principal) -> PartitionKey:
        name = principal.namespace.encode()
        return PartitionKey(hashlib.blake2b(name, key=self._secret, digest_size=32).digest())


def digest(text: str, holder: PartitionKey, kind: bytes = b"") -> Digest:
    """Return the digest of a text for one `kind` of entry (up to 16 bytes)."""
    data = text.encode("utf-8", "surrogatepass")
    return Digest(hashlib.blake2b(data, key=holder, digest_size=16, person=kind).digest())


class _CacheGenerations(Generic[Value]):
    """The two generations of one partition."""

    def __init__(self, now_s: float) -> None:
        self.young: dict[Digest, Value] = {}
        self.old: dict[Digest, Value] = {}
        self.young_weight = 0
        self.old_weight = 0
        self._rotates_s = now_s + LIFETIME_S

    @property
    def weight(self) -> int:
        return self.young_weight + self.old_weight

    def rotate(self, now_s: float) -> None:
        self.old, self.young = self.young, {}
        self.old_weight, self.young_weight = self.young_weight, 0
        self._rotates_s = now_s + LIFETIME_S

    def evict_expired(self, now_s: float) -> None:
        if now_s < self._rotates_s:
            return
        due_s = self._rotates_s
        self.rotate(due_s)  # on schedule, even if this call is late
        if now_s >= due_s + LIFETIME_S:  # after a long pause both are too old
            self.rotate(now_s)


class TtlCache(Generic[Value]):
    """The cache of all partitions. One event loop uses it."""

    def __init__(
        self, clock: Clock, *, max_weight: int, weigh: Callable[[Value], int] = lambda _: 1
    ) -> None:
        """`max_weight` limits all values together, except for those of one request."""
        self._clock = clock
        self._max_weight = max_weight
        self._weigh = weigh
        self._weight = 0
        self._of: dict[PartitionKey, _CacheGenerations[Value]] = {}

    def __len__(self) -> int:
        return sum(len(each.young) + len(each.old) for each in self._of.values())

    def get_or_compute_many(
        self,
        keys: Sequence[Digest],
        make: Callable[[list[int]], list[Value]],
        *,
        holder: PartitionKey,
    ) -> list[Value]:
        """Return the values of the keys, in order. `make` gets the indexes of missing ones."""
        self._make_room(holder)
        generations = self._of[holder]
        missing: dict[Digest, int] = {}
        for index, key in enumerate(keys):
            if key not in generations.young:
                if (value := generations.old.pop(key, None)) is not None:
                    generations.young[key] = value
                    weight = self._weigh(value)
                    generations.old_weight -= weight
                    generations.young_weight += weight
                else:
                    missing[key] = index
        if missing:
            self._add_values(
                generations, dict(zip(missing, make(list(missing.values())), strict=True))
            )
        return [generations.young[key] for key in keys]

    def get_or_compute(
        self, key: Digest, make: Callable[[], Value], *, holder: PartitionKey
    ) -> Value:
        return self.get_or_compute_many([key], lambda _: [make()], holder=holder)[0]

    def evict_expired(self) -> None:
        """Evict expired entries, also in partitions that are no longer used."""
        now_s = self._clock.monotonic_s()
        for holder, generations in list(self._of.items()):
            self._weight -= generations.weight
            generations.evict_expired(now_s)
            self._weight += generations.weight
            if not generations.young and not generations.old:
                del self._of[holder]

    def _add_values(
        self, generations: _CacheGenerations[Value], values: dict[Digest, Value]
    ) -> None:
        generations.young.update(values)
        weight = sum(map(self._weigh, values.values()))
        generations.young_weight += weight
        self._weight += weight

    def _make_room(self, holder: PartitionKey) -> None:
        now_s = self._clock.monotonic_s()
        generations = self._of.get(holder)
        if generations is None:
            generations = self._of[holder] = _CacheGenerations(now_s)
        self._weight -= generations.weight
        generations.evict_expired(now_s)
        # Half of the share, as there are two generations.
        if generations.young_weight >= self._max_weight * MAX_SHARE / 2:
            generations.rotate(now_s)
        self._weight += generations.weight
        while self._weight > self._max_weight:
            heaviest = max(self._of.values(), key=lambda each: each.weight)
            self._weight -= heaviest.weight
            heaviest.rotate(now_s)
            self._weight += heaviest.weight
