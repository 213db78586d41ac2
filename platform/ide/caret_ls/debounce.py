"""Debouncing: the delay between a keystroke and the request. Pure.

Rules:

1. On a line that is blank before the cursor, or if the user invokes a suggestion, there is no
   delay. Otherwise the delay is at least `min_delay_ms` (by default 75 ms), unless rule 5 applies.
   Rules 2 to 4 never extend it beyond 250 ms.
2. The delay is at least one and a half of the user's usual time between keys. So requests are sent
   when the user pauses, not at each key.
3. Slow responses make frequent requests useless. So the delay grows with the response time.
4. The delay grows with each rejected suggestion, up to four. An accepted suggestion resets it.
5. Each key adds to an allowance of requests, and each request uses one. There is no delay while the
   allowance has a request left, and responses usually arrive within 150 ms and before the next key.
   So text appears early, but the number of requests for each key is limited. If the user has set a
   longer `min_delay_ms` than the default, this rule does not apply.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

MIN_DELAY_MS: Final = 75.0  # Copilot's delay
MAX_DELAY_MS: Final = 250.0
# Delay, as a multiple of the usual time between two keys (the gap). A smaller factor was worse in
# replays of typing in simulated time: with 0.75, a weak model gets a request at every second key,
# and most responses arrive too late for the next key.
_GAP_FACTOR: Final = 1.5
USUAL_RESPONSE_MS: Final = 150.0  # slower responses extend the delay
_NUM_KEYS: Final = 12  # the last keys, which show the current speed of typing
_MAX_TYPING_GAP_S: Final = 1.0  # a longer gap is a pause, and does not count
_NUM_RESPONSES: Final = 8  # the last responses, which show how fast the gateway is
_DELAY_GROWTH: Final = 0.1  # each rejected suggestion extends the delay by this share
_MAX_REJECTIONS: Final = 4  # further ones do not extend the delay
# Requests that each key adds to the allowance. From replays of typing in simulated time: the result
# of a request that is sent at once is visible more often than one after a delay.
_ALLOWANCE_PER_KEY: Final = 0.33
MAX_ALLOWANCE: Final = 3.0  # requests


@dataclass(slots=True)
class Debouncer:
    """Computes delays from the typing speed, response times and rejections in one editor."""

    min_delay_ms: float = MIN_DELAY_MS
    # Monotonic times of the last keys.
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
        """Return the seconds to wait from now on; 0: send the request at once.

        A line is fresh if it is blank before the cursor. Without a key yet, there is no delay.
        """
        if is_invoked or is_fresh_line or not self._keys_s:
            return 0.0
        if self.is_eager():
            return 0.0
        passed_s = now_s - self._keys_s[-1]
        return max(self._compute_delay_ms() / 1000 - passed_s, 0.0)

    def is_eager(self, *, reserve: float = 0.0) -> bool:
        """Return whether a request may be sent at once (rule 5).

        `reserve` is the number of requests that must then be left in the allowance.
        """
        next_key_ms = self._usual_gap_ms() or USUAL_RESPONSE_MS  # if the gap is not known yet
        is_fast = _median(self._responses_ms) <= min(USUAL_RESPONSE_MS, next_key_ms)
        has_allowance = self._allowance >= 1 + reserve
        has_longer_delay = self.min_delay_ms > MIN_DELAY_MS  # the user has set it
        return is_fast and has_allowance and not has_longer_delay

    def _compute_delay_ms(self) -> float:
        slow_ms = max(_median(self._responses_ms) - USUAL_RESPONSE_MS, 0.0)
        patience = 1 + _DELAY_GROWTH * self._num_rejections
        delay_ms = max(self.min_delay_ms + slow_ms, _GAP_FACTOR * self._usual_gap_ms()) * patience
        return min(delay_ms, max(MAX_DELAY_MS, self.min_delay_ms))

    def _usual_gap_ms(self) -> float:
        """Return the median time between two keys, without pauses; 0: not known yet."""
        gaps = [after - before for before, after in pairwise(self._keys_s)]
        return _median([gap * 1000 for gap in gaps if gap < _MAX_TYPING_GAP_S])


def _median(values: "deque[float] | list[float]") -> float:
    """Return the upper median; 0 if there are no values."""
    return sorted(values)[len(values) // 2] if values else 0.0
