"""A TTL cache for results computed from customers' texts.

Rules:
1. In memory only. An entry lives at most twice LIFETIME_S after the last request that used it, plus
   the seconds until the next `evict_expired`.
2. An entry is found only in its own partition (tenant, epoch, and in strict isolation the user). So
   one tenant's texts never make requests of another tenant measurably faster.
3. A partition uses hardly more than a quarter of the cache, so none displaces all entries of
   another.
4. Entries are found by digests under a secret of this process. The texts are not stored.

Each partition has two generations. New and used entries are in the young one. When the young one is
full or LIFETIME_S old, it becomes the old one, and the previous old one is dropped as a whole.

Sizes are weights, in a unit that the cache's creator chooses, such as tokens.
"""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from typing import Final, Generic, NewType, TypeVar

from caret.foundation.clock import Clock
from inference.completion.request import Principal

LIFETIME_S: Final = 300.0
MAX_SHARE: Final = 0.25  # of the cache, for one partition

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


def compute_digest(text: str, partition: PartitionKey, kind: bytes = b"") -> Digest:
    """Return the digest of a text for one kind of entry. `kind` has up to 16 bytes."""
    data = text.encode("utf-8", "surrogatepass")
    return Digest(hashlib.blake2b(data, key=partition, digest_size=16, person=kind).digest())


class _CacheGenerations(Generic[Value]):
    """The two generations of one partition."""

    def __init__(self, now_s: float) -> None:
        self.young: dict[Digest, Value] = {}
        self.old: dict[Digest, Value] = {}
        self.young_weight = 0
        self.old_weight = 0
        self._next_rotation_s = now_s + LIFETIME_S

    @property
    def weight(self) -> int:
        return self.young_weight + self.old_weight

    def rotate(self, now_s: float) -> None:
        """Drop the old generation. The young one becomes the old one."""
        self.old, self.young = self.young, {}
        self.old_weight, self.young_weight = self.young_weight, 0
        self._next_rotation_s = now_s + LIFETIME_S

    def evict_expired(self, now_s: float) -> None:
        if now_s < self._next_rotation_s:
            return
        due_s = self._next_rotation_s
        self.rotate(due_s)  # on schedule, even if this call is late
        if now_s >= due_s + LIFETIME_S:  # after a long pause both are too old
            self.rotate(now_s)


class TtlCache(Generic[Value]):
    """The cache of all partitions. Only one event loop may use it."""

    def __init__(
        self, clock: Clock, *, max_weight: int, weigh: Callable[[Value], int] = lambda _: 1
    ) -> None:
        """Limit the total weight of all values.

        The values that the latest call computed may exceed the limit until the next call.
        """
        self._clock = clock
        self._max_weight = max_weight
        self._weigh = weigh
        self._weight = 0
        self._partitions: dict[PartitionKey, _CacheGenerations[Value]] = {}

    def __len__(self) -> int:
        return sum(
            len(generations.young) + len(generations.old)
            for generations in self._partitions.values()
        )

    def get_or_compute_many(
        self,
        digests: Sequence[Digest],
        compute: Callable[[list[int]], list[Value]],
        *,
        partition: PartitionKey,
    ) -> list[Value]:
        """Return the values of the digests, in order.

        `compute` gets the indexes of the digests without a value, and returns their values.
        """
        generations = self._prepare_partition(partition)
        missing: dict[Digest, int] = {}
        for index, digest in enumerate(digests):
            if digest not in generations.young:
                if (value := generations.old.pop(digest, None)) is not None:
                    generations.young[digest] = value
                    weight = self._weigh(value)
                    generations.old_weight -= weight
                    generations.young_weight += weight
                else:
                    missing[digest] = index
        if missing:
            self._add_values(
                generations, dict(zip(missing, compute(list(missing.values())), strict=True))
            )
        return [generations.young[digest] for digest in digests]

    def get_or_compute(
        self, digest: Digest, compute: Callable[[], Value], *, partition: PartitionKey
    ) -> Value:
        return self.get_or_compute_many([digest], lambda _: [compute()], partition=partition)[0]

    def evict_expired(self) -> None:
        """Evict expired entries, also in partitions that are no longer used."""
        now_s = self._clock.monotonic_s()
        for partition, generations in list(self._partitions.items()):
            self._weight -= generations.weight
            generations.evict_expired(now_s)
            self._weight += generations.weight
            if not generations.young and not generations.old:
                del self._partitions[partition]

    def _add_values(
        self, generations: _CacheGenerations[Value], values: dict[Digest, Value]
    ) -> None:
        generations.young.update(values)
        weight = sum(map(self._weigh, values.values()))
        generations.young_weight += weight
        self._weight += weight

    def _prepare_partition(self, partition: PartitionKey) -> _CacheGenerations[Value]:
        """Return the partition, created if necessary. Evict entries that exceed the limits."""
        now_s = self._clock.monotonic_s()
        generations = self._partitions.get(partition)
        if generations is None:
            generations = self._partitions[partition] = _CacheGenerations(now_s)
        self._weight -= generations.weight
        generations.evict_expired(now_s)
        # Half of the share, as there are two generations.
        if generations.young_weight >= self._max_weight * MAX_SHARE / 2:
            generations.rotate(now_s)
        self._weight += generations.weight
        while self._weight > self._max_weight:
            heaviest = max(self._partitions.values(), key=lambda candidate: candidate.weight)
            self._weight -= heaviest.weight
            heaviest.rotate(now_s)
            self._weight += heaviest.weight
        return generations
