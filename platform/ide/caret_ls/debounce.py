"""Debouncing: how long to wait for another keystroke. Pure: times are passed in, in seconds.

Rules:

1. At least `min_delay_ms` (75 ms) after the last change. On a fresh line, or when invoked, there is
   no wait. The other rules never extend the wait beyond 250 ms.
2. At least one and a half of the user's usual time between keys. So requests are sent when the user
   pauses, not at each key.
3. Slow responses make frequent requests useless, so the wait grows with the response time.
4. The wait grows with each rejected suggestion; an accepted one resets it.
5. Each key adds to an allowance. While it is enough for a request, and responses come before the
   next key, requests are sent at once, unless the user has set a longer wait. So text is there
   early, but requests for each key stay limited.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

MIN_WAIT_MS: Final = 75.0  # Copilot's wait
MAX_WAIT_MS: Final = 250.0
# From replays of typing in simulated time. With three quarters of the gap, a weak model gets a
# request at every second key, and most responses come too late for the next one.
_GAP_SHARE: Final = 1.5
USUAL_RESPONSE_MS: Final = 150.0  # slower responses extend the wait
_NUM_KEYS: Final = 12  # the last dozen keys show the current speed of typing
_MAX_TYPING_GAP_S: Final = 1.0  # a longer pause is not typing
_NUM_RESPONSES: Final = 8
_WAIT_GROWTH: Final = 0.1  # how much longer the wait gets with each rejected suggestion
_MAX_REJECTIONS: Final = 4
# From replays of typing in simulated time: a request that is sent at once is visible more often
# than one that is sent after a wait.
_ALLOWANCE_PER_KEY: Final = 0.33
MAX_ALLOWANCE: Final = 3.0


@dataclass(slots=True)
class Debouncer:
    """Typing speed and response times in one editor."""

    min_delay_ms: float = MIN_WAIT_MS
    _keys_s: deque[float] = field(default_factory=lambda: deque(maxlen=_NUM_KEYS))
    _responses_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_NUM_RESPONSES))
    _num_rejections: int = 0
    _allowance: float = MAX_ALLOWANCE  # requests that may be sent at once

    def on_keystroke(self, at_s: float) -> None:
        self._keys_s.append(at_s)
        self._allowance = min(self._allowance + _ALLOWANCE_PER_KEY, MAX_ALLOWANCE)

    def on_request(self) -> None:
        self._allowance = max(self._allowance - 1, 0.0)

    def on_response(self, took_ms: float) -> None:
        self._responses_ms.append(took_ms)

    def on_rejected(self) -> None:
        self._num_rejections = min(self._num_rejections + 1, _MAX_REJECTIONS)

    def on_accepted(self) -> None:
        self._num_rejections = 0

    def delay_s(self, now_s: float, *, is_invoked: bool, is_fresh_line: bool) -> float:
        """Return the seconds to wait from now on."""
        if is_invoked or is_fresh_line or not self._keys_s:
            return 0.0
        if self.is_eager():
            return 0.0
        passed_s = now_s - self._keys_s[-1]
        return max(self._compute_pause_ms() / 1000 - passed_s, 0.0)

    def is_eager(self, *, reserve: float = 0.0) -> bool:
        """Return whether a request may be sent at once: see rule 5.

        `reserve` is the allowance that must be left for other requests.
        """
        response_ms = _median(self._responses_ms)
        is_fast = response_ms <= min(USUAL_RESPONSE_MS, self._usual_gap_ms() or USUAL_RESPONSE_MS)
        has_allowance = self._allowance >= 1 + reserve
        return is_fast and has_allowance and self.min_delay_ms <= MIN_WAIT_MS

    def _compute_pause_ms(self) -> float:
        slow_ms = max(_median(self._responses_ms) - USUAL_RESPONSE_MS, 0.0)
        patience = 1 + _WAIT_GROWTH * self._num_rejections
        wanted_ms = max(self.min_delay_ms + slow_ms, _GAP_SHARE * self._usual_gap_ms()) * patience
        return min(max(wanted_ms, self.min_delay_ms), max(MAX_WAIT_MS, self.min_delay_ms))

    def _usual_gap_ms(self) -> float:
        gaps = [after - before for before, after in pairwise(self._keys_s)]
        return _median([gap * 1000 for gap in gaps if gap < _MAX_TYPING_GAP_S])


def _median(values: "deque[float] | list[float]") -> float:
    """Return the upper median; 0 if there are no values."""
    return sorted(values)[len(values) // 2] if values else 0.0
