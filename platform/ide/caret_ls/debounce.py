"""How long to wait for another keystroke before asking. Pure: times come in, in seconds.

Rules:
1. 75 ms after the last change at least; at a fresh line, and when invoked, at once.
2. Who types faster than he could read a suggestion is waited for: most of the time that his next
   key usually takes, so that a request is made where he slows down, not at each key.
3. Where answers take long, asking often only costs: the wait grows with them.
4. Where suggestions are passed by one after the other, the wait grows; one that is taken ends that.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

MIN_WAIT_MS: Final = 75.0  # what Copilot waits
MAX_WAIT_MS: Final = 250.0
# By replays of typing in simulated time: with all of it the text comes 100 ms later, with half
# of it a weak model is asked at every second key.
_GAP_SHARE: Final = 0.75
USUAL_ANSWER_MS: Final = 150.0  # slower ones are waited for
_NUM_KEYS: Final = 12  # the last ones; a dozen say how somebody types just now
_THINKS_S: Final = 1.0  # a longer pause says nothing about typing
_NUM_ANSWERS: Final = 8
_PASSED_SHARE: Final = 0.1  # by how much each suggestion passed by makes the wait longer
_MAX_PASSED: Final = 4


@dataclass(slots=True)
class TypingRate:
    """Of one editor: its user, and the gateway's answers to him."""

    min_delay_ms: float = MIN_WAIT_MS
    _keys_s: deque[float] = field(default_factory=lambda: deque(maxlen=_NUM_KEYS))
    _answers_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_NUM_ANSWERS))
    _num_passed: int = 0

    def on_keystroke(self, at_s: float) -> None:
        self._keys_s.append(at_s)

    def on_answer(self, took_ms: float) -> None:
        self._answers_ms.append(took_ms)

    def on_ignored(self) -> None:
        self._num_passed = min(self._num_passed + 1, _MAX_PASSED)

    def on_accepted(self) -> None:
        self._num_passed = 0

    def delay_s(self, now_s: float, *, is_invoked: bool, is_fresh_line: bool) -> float:
        """From now on."""
        if is_invoked or is_fresh_line or not self._keys_s:
            return 0.0
        passed_s = now_s - self._keys_s[-1]
        return max(self._compute_pause_ms() / 1000 - passed_s, 0.0)

    def _compute_pause_ms(self) -> float:
        slow_ms = max(_middle(self._answers_ms) - USUAL_ANSWER_MS, 0.0)
        patience = 1 + _PASSED_SHARE * self._num_passed
        wanted_ms = max(self.min_delay_ms + slow_ms, _GAP_SHARE * self._usual_gap_ms()) * patience
        return min(max(wanted_ms, self.min_delay_ms), max(MAX_WAIT_MS, self.min_delay_ms))

    def _usual_gap_ms(self) -> float:
        gaps = [after - before for before, after in pairwise(self._keys_s)]
        return _middle([gap * 1000 for gap in gaps if gap < _THINKS_S])


def _middle(values: "deque[float] | list[float]") -> float:
    """The upper median; 0 of none."""
    return sorted(values)[len(values) // 2] if values else 0.0
