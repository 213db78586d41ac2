"""What was worked out from a customer's text a moment ago, so that it need not be again.

Rules:
1. Memory only, and never longer than twice LIFETIME_S after it was last in a request (and the few
   seconds until `evict_expired` is called next): the same bounds in which the engine's own prefix
   cache holds the prompt.
2. A thing is found only under the name of its holder (tenant, epoch, in strict isolation the user):
   what one has sent makes nothing faster for another, not even measurably.
3. No holder has more than a quarter of the room: nobody's texts displace all of another's.
4. Keys are digests under a secret of this process; the texts themselves are not kept.

Each holder has two generations: what is used moves to the young one, the old one is dropped whole.
"""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from typing import Final, Generic, NewType, TypeVar

from caret.foundation.clock import Clock
from inference.completion.request import Principal

LIFETIME_S: Final = 300.0
MAX_SHARE: Final = 0.25  # of one holder

PartitionKey = NewType("PartitionKey", bytes)
Digest = NewType("Digest", bytes)
Value = TypeVar("Value")


class CachePartitions:
    """Names of holders, of this process only."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def for_principal(self, principal: Principal) -> PartitionKey:
        name = principal.namespace.encode()
        return PartitionKey(hashlib.blake2b(name, key=self._secret, digest_size=32).digest())


def digest(text: str, holder: PartitionKey, kind: bytes = b"") -> Digest:
    """Of a text as `kind` of thing (up to 16 bytes): the same text is another thing elsewhere."""
    data = text.encode("utf-8", "surrogatepass")
    return Digest(hashlib.blake2b(data, key=holder, digest_size=16, person=kind).digest())


class _CacheGenerations(Generic[Value]):
    """One holder's."""

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
        self.rotate(due_s)  # by the schedule, however late this is
        if now_s >= due_s + LIFETIME_S:  # after a long silence both are too old
            self.rotate(now_s)


class TtlCache(Generic[Value]):
    """One event loop uses it."""

    def __init__(
        self, clock: Clock, *, max_weight: int, weigh: Callable[[Value], int] = lambda _: 1
    ) -> None:
        """`max_weight`: of all values together, but for those of one request."""
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
        """The keys' values in their order; `make` gets the places of those that are not known."""
        self._make_room(holder)
        held = self._of[holder]
        unknown: dict[Digest, int] = {}
        for place, key in enumerate(keys):
            if key not in held.young:
                if (value := held.old.pop(key, None)) is not None:
                    held.young[key] = value
                    weight = self._weigh(value)
                    held.old_weight -= weight
                    held.young_weight += weight
                else:
                    unknown[key] = place
        if unknown:
            self._add_values(held, dict(zip(unknown, make(list(unknown.values())), strict=True)))
        return [held.young[key] for key in keys]

    def get_or_compute(
        self, key: Digest, make: Callable[[], Value], *, holder: PartitionKey
    ) -> Value:
        return self.get_or_compute_many([key], lambda _: [make()], holder=holder)[0]

    def evict_expired(self) -> None:
        """Also what nobody asks for any more."""
        now_s = self._clock.monotonic_s()
        for holder, held in list(self._of.items()):
            self._weight -= held.weight
            held.evict_expired(now_s)
            self._weight += held.weight
            if not held.young and not held.old:
                del self._of[holder]

    def _add_values(self, held: _CacheGenerations[Value], values: dict[Digest, Value]) -> None:
        held.young.update(values)
        weight = sum(map(self._weigh, values.values()))
        held.young_weight += weight
        self._weight += weight

    def _make_room(self, holder: PartitionKey) -> None:
        now_s = self._clock.monotonic_s()
        held = self._of.get(holder)
        if held is None:
            held = self._of[holder] = _CacheGenerations(now_s)
        self._weight -= held.weight
        held.evict_expired(now_s)
        # Half of the share, as there are two generations.
        if held.young_weight >= self._max_weight * MAX_SHARE / 2:
            held.rotate(now_s)
        self._weight += held.weight
        while self._weight > self._max_weight:
            heaviest = max(self._of.values(), key=lambda each: each.weight)
            self._weight -= heaviest.weight
            heaviest.rotate(now_s)
            self._weight += heaviest.weight
