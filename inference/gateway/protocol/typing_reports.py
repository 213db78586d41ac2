"""Typing reports: the number of characters that a user typed by hand, never their text."""

from collections.abc import Mapping
from typing import Final

from caret.contracts.language_ids import LANGUAGES
from caret.foundation.clock import Clock
from inference.errors import TooManyRequests
from inference.gateway.protocol.frames import InvalidFrame

MAX_LANGUAGES: Final = 16  # in one report
MAX_CHARS: Final = 100_000  # in one language: more than three hours of fast typing
MIN_PAUSE_S: Final = 10.0  # between two reports of a connection


class TypingReportLimiter:
    """Validates the typing reports of one connection, and limits their frequency."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_s: float | None = None  # time of the last report; None: there was none

    def accept(self, chars: Mapping[str, int]) -> dict[str, int]:
        """Accept a report, and return its typed characters by language, without zeros.

        After TooManyRequests, the client must add `chars` to its next report. Raises InvalidFrame,
        TooManyRequests.
        """
        counts = _check_counts(chars)
        now_s = self._clock.monotonic_s()
        if self._last_s is not None and now_s - self._last_s < MIN_PAUSE_S:
            pause_s = MIN_PAUSE_S - (now_s - self._last_s)
            raise TooManyRequests(
                "too_many_requests", "Send typing reports less often.", retry_after_s=pause_s
            )
        self._last_s = now_s
        return counts


def _check_counts(chars: Mapping[str, int]) -> dict[str, int]:
    """Return valid counts by the lower-case language, without zeros. Raises InvalidFrame."""
    if len(chars) > MAX_LANGUAGES:
        raise InvalidFrame("invalid_field", f"chars must have at most {MAX_LANGUAGES} languages.")
    if any(not 0 <= count <= MAX_CHARS for count in chars.values()):
        raise InvalidFrame(
            "invalid_field", f"chars must be from 0 to {MAX_CHARS} for each language."
        )
    counts: dict[str, int] = {}
    for language, count in chars.items():
        name = language.lower()
        if name and name not in LANGUAGES:
            raise InvalidFrame(
                "unknown_language", 'chars has an unknown language. Use "" for other languages.'
            )
        if count:
            # Two names may be spellings of one language, such as "Go" and "go".
            counts[name] = min(MAX_CHARS, counts.get(name, 0) + count)
    return counts
