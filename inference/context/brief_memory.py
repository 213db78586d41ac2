"""What was worked out from a customer's text a moment ago, so that it need not be again.

Rules:
1. Memory only, and never longer than twice LIFETIME_S after it was last in a request: the same
   bounds in which the engine's own prefix cache holds the prompt.
2. A thing is found only under the name of its holder (tenant, epoch, in strict isolation the user):
   what one has sent makes nothing faster for another, not even measurably.
3. Keys are digests under a secret of this process; the texts themselves are not kept.

Two generations: what is used moves to the young one, the old one is dropped whole.
"""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from typing import Final, Generic, NewType, TypeVar

from caret.foundation.clock import Clock
from inference.completion.request import Principal

LIFETIME_S: Final = 300.0

Holder = NewType("Holder", bytes)
Digest = NewType("Digest", bytes)
Value = TypeVar("Value")


class Holders:
    """Names of holders, of this process only."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def of(self, principal: Principal) -> Holder:
        name = principal.namespace.encode()
        return Holder(hashlib.blake2b(name, key=self._secret, digest_size=32).digest())


def digest(text: str, holder: Holder, kind: bytes = b"") -> Digest:
    """Of a text as `kind` of thing (up to 16 bytes): the same text is another thing elsewhere."""
    data = text.encode("utf-8", "surrogatepass")
    return Digest(hashlib.blake2b(data, key=holder, digest_size=16, person=kind).digest())


class BriefMemory(Generic[Value]):
    """One event loop uses it."""

    def __init__(self, clock: Clock, *, max_items: int) -> None:
        """`max_items`: of a generation, at least one request's."""
        self._clock = clock
        self._max_items = max_items
        self._young: dict[Digest, Value] = {}
        self._old: dict[Digest, Value] = {}
        self._rotates_s = clock.monotonic_s() + LIFETIME_S

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def all_of(
        self, keys: Sequence[Digest], make: Callable[[list[int]], list[Value]]
    ) -> list[Value]:
        """The keys' values in their order; `make` gets the places of those that are not known."""
        self._forget()
        unknown: dict[Digest, int] = {}
        for place, key in enumerate(keys):
            if key not in self._young:
                if (value := self._old.pop(key, None)) is not None:
                    self._young[key] = value
                else:
                    unknown[key] = place
        if unknown:
            self._young.update(zip(unknown, make(list(unknown.values())), strict=True))
        return [self._young[key] for key in keys]

    def one(self, key: Digest, make: Callable[[], Value]) -> Value:
        return self.all_of([key], lambda _: [make()])[0]

    def _forget(self) -> None:
        now_s = self._clock.monotonic_s()
        if now_s < self._rotates_s and len(self._young) < self._max_items:
            return
        # After a long silence both generations are too old.
        is_late = now_s >= self._rotates_s + LIFETIME_S
        self._old, self._young = ({} if is_late else self._young), {}
        self._rotates_s = now_s + LIFETIME_S
