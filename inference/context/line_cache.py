"""Token ids of lines seen a short while ago, so that a keystroke tokenises one line and not all.

Rules:
1. Memory only, and never longer than twice LIFETIME_S after a line was last in a request: the same
   bounds in which the engine's own prefix cache holds the prompt.
2. A line is found only under the name of its holder (tenant, epoch, in strict isolation the user):
   what one has sent makes nothing faster for another, not even measurably.
3. Keys are digests under a secret of this process; the lines themselves are not kept.

Two generations: what is used moves to the young one, the old one is dropped whole.
"""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Final

from caret.foundation.clock import Clock
from inference.completion.request import Principal
from inference.context.tokens import Tokens

LIFETIME_S: Final = 300.0
MAX_LINES: Final = 100_000  # of a generation; about 400 bytes each


class LineCache:
    """One event loop uses it."""

    def __init__(self, tokens: Tokens, clock: Clock, *, max_lines: int = MAX_LINES) -> None:
        self._tokens = tokens
        self._clock = clock
        self._max_lines = max_lines
        self._secret = secrets.token_bytes(32)
        self._young: dict[bytes, list[int]] = {}
        self._old: dict[bytes, list[int]] = {}
        self._rotates_s = clock.monotonic_s() + LIFETIME_S

    def encode(self, text: str, holder: bytes) -> list[int]:
        """The same tokens as Tokens.encode; `holder` as `holder_of` has it."""
        lines = self._tokens.lines(text)
        if len(lines) == 1:
            return self._tokens.encode(text)
        self._forget()
        keys = [_key(line, holder) for line in lines]
        self._learn(keys, lines)
        token_ids: list[int] = []
        for key in keys:
            token_ids += self._young[key]
        return token_ids

    def holder_of(self, principal: Principal) -> bytes:
        name = principal.namespace.encode()
        return hashlib.blake2b(name, key=self._secret, digest_size=32).digest()

    def _learn(self, keys: Sequence[bytes], lines: Sequence[str]) -> None:
        """Afterwards all of `keys` are in the young generation."""
        unknown: dict[bytes, str] = {}
        for key, line in zip(keys, lines, strict=True):
            if key not in self._young:
                if (token_ids := self._old.pop(key, None)) is not None:
                    self._young[key] = token_ids
                else:
                    unknown[key] = line
        if unknown:
            encoded = self._tokens.encode_each(list(unknown.values()))
            self._young.update(zip(unknown, encoded, strict=True))

    def _forget(self) -> None:
        now_s = self._clock.monotonic_s()
        if now_s < self._rotates_s and len(self._young) < self._max_lines:
            return
        # After a long silence both generations are too old.
        is_late = now_s >= self._rotates_s + LIFETIME_S
        self._old, self._young = ({} if is_late else self._young), {}
        self._rotates_s = now_s + LIFETIME_S


def _key(line: str, holder: bytes) -> bytes:
    data = line.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, key=holder, digest_size=16).digest()
