"""How many requests a pool may have under way, learnt from how late its first tokens are.

CUBIC (RFC 9438), with lateness in the place of loss: a late first token lowers the limit to 85% of
what was under way, and from there it grows back along a cubic curve, flat where it was late the
last time, steeper the longer it goes well. Without lateness for half a minute all is forgotten.

Rules:
1. Lateness counts when queueing can be its cause: the request had company, and the median of the
   latest requests is well above what it is when the pool is at ease. A cold prompt alone is late
   by itself, and shedding its neighbours would not help it.
2. One decrease an epoch: what was admitted before the last decrease says nothing about it.
3. The limit grows only while it is in use.
4. It never falls below the floor: so few cannot be in each other's way.

Times come as ratios to their targets, so that modes share a limit.
"""

from collections import deque
from statistics import median
from typing import Final

DECREASE: Final = 0.85
RETURN_S: Final = 8.0  # to where it was late the last time
FORGET_S: Final = 30.0
FIRST: Final = 32  # times the floor; lateness corrects it within one first token's time
_QUEUEING: Final = 1.7  # of the median at ease
_NUM_LATEST: Final = 24
_FEW: Final = 8
_EASE_WEIGHT: Final = 0.05  # of a new time at ease
_MAX_AT_EASE: Final = 0.5  # of the target: who starts under load knows no better


class CubicLimit:
    def __init__(self, *, floor: int) -> None:
        self.floor = floor  # follows the number of replicas
        self.value = float(FIRST * floor)
        self._latest: deque[float] = deque(maxlen=_NUM_LATEST)
        self._at_ease: float | None = None  # ratio; None: not known yet
        self._late_at: float | None = None  # the limit that was too much; None: none was
        self._decreased_s = float("-inf")
        self._used_s = 0.0  # in use since the decrease
        self._looked_s = float("-inf")

    @property
    def is_queueing(self) -> bool:
        """Whether the latest requests took longer than they do when the pool is at ease."""
        return self._is_slow(list(self._latest))

    def reset(self, now_s: float) -> None:
        """To be called from time to time: what has gone well for long enough starts afresh."""
        if self._late_at is not None and now_s - self._decreased_s > FORGET_S:
            self._late_at = None
            self.value = max(self.value, float(FIRST * self.floor))
            self._latest.clear()

    def on_first_token(
        self, ratio: float, *, num_ahead: int, admitted_s: float, now_s: float
    ) -> None:
        """A first token came, or is overdue, after `ratio` times its target. `num_ahead` were under
        way when it was admitted."""
        self._latest.append(ratio)
        if ratio <= 1.0:
            self._record_ease(ratio, num_ahead)
            if num_ahead + 1 >= 0.8 * self.value:
                self._grow(now_s)
        elif num_ahead >= self.floor / 2 and admitted_s > self._decreased_s and self.is_queueing:
            self._decrease(min(self.value, num_ahead + 1.0), now_s)

    def on_rejected(self, num_under_way: int, *, epoch_s: float, now_s: float) -> None:
        """So many are under way that the next would be late, as far as one can tell."""
        if now_s - self._decreased_s > epoch_s and self._is_slow(list(self._latest)[-_FEW:]):
            self._decrease(min(self.value, float(num_under_way)), now_s)

    def _is_slow(self, ratios: list[float]) -> bool:
        at_ease = _MAX_AT_EASE if self._at_ease is None else min(self._at_ease, _MAX_AT_EASE)
        return len(ratios) >= _FEW and median(ratios) > _QUEUEING * at_ease

    def _record_ease(self, ratio: float, num_ahead: int) -> None:
        if self._at_ease is None:
            self._at_ease = ratio
        elif num_ahead < self.floor or ratio < self._at_ease:
            self._at_ease += _EASE_WEIGHT * (ratio - self._at_ease)

    def _decrease(self, was_late_at: float, now_s: float) -> None:
        self._late_at = was_late_at
        self.value = max(float(self.floor), DECREASE * was_late_at)
        self._decreased_s = self._looked_s = now_s
        self._used_s = 0.0

    def _grow(self, now_s: float) -> None:
        if self._late_at is None:
            self.value += 1.0
            return
        # While nobody uses the limit, the curve waits.
        self._used_s += min(now_s - self._looked_s, 1.0)
        self._looked_s = now_s
        bend = (self._used_s / RETURN_S - 1.0) ** 3  # from -1, by 0 at RETURN_S
        self.value = max(self.value, self._late_at * (1.0 + (1.0 - DECREASE) * bend))
