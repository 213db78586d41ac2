"""How much was typed by hand, as a client tells of its user now and then: counts, never what."""

from collections.abc import Mapping
from typing import Final

from caret.foundation.clock import Clock
from inference.errors import TooManyRequests
from inference.gateway.language_ids import LANGUAGES
from inference.gateway.protocol.frames import InvalidFrame

MAX_LANGUAGES: Final = 16
MAX_CHARS: Final = 100_000  # in one language: an hour and a half of a fast typist
MIN_PAUSE_S: Final = 10.0


class TypingPace:
    """Of one connection."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_s: float | None = None  # None: never told

    def accept(self, chars: Mapping[str, int]) -> dict[str, int]:
        """Return the typed characters by language, without zeros.

        Raises InvalidFrame, and TooManyRequests for a client that reports too often: it adds these
        characters to its next report.
        """
        counted = _checked(chars)
        now_s = self._clock.monotonic_s()
        if self._last_s is not None and now_s - self._last_s < MIN_PAUSE_S:
            pause_s = MIN_PAUSE_S - (now_s - self._last_s)
            raise TooManyRequests("too_many_requests", "Tell it less often.", retry_after_s=pause_s)
        self._last_s = now_s
        return counted


def _checked(chars: Mapping[str, int]) -> dict[str, int]:
    if len(chars) > MAX_LANGUAGES:
        raise InvalidFrame("invalid_field", f"chars may have {MAX_LANGUAGES} languages.")
    if any(not 0 <= count <= MAX_CHARS for count in chars.values()):
        raise InvalidFrame("invalid_field", f"chars counts from 0 to {MAX_CHARS} in each language.")
    lower: dict[str, int] = {}
    for language, count in chars.items():
        name = language.lower()
        if name and name not in LANGUAGES:
            raise InvalidFrame("unknown_language", 'A language of chars is not known; "" is any.')
        if count:
            lower[name] = min(MAX_CHARS, lower.get(name, 0) + count)
    return lower
