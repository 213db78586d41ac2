"""An adaptive concurrency limit for a pool, learnt from the latency of its first tokens.

The algorithm is CUBIC (RFC 9438), with a late first token in place of a lost packet. A late first
token lowers the limit to 85% of the number of requests that were in flight when the late request
was admitted. The limit then grows back along a cubic curve, which is flat near the value that was
too high. Above this value, the curve becomes steeper. Half a minute after the last decrease, the
limit returns to its first value if the first value is higher.

Rules:
1. A late first token counts only if queueing can be its cause: other requests were in flight (at
   least half of the floor), and the median of the latest latencies is well above that of an idle
   pool. A cold prompt is slow even in an idle pool, and shedding other requests would not help it.
2. There is one decrease per epoch: late first tokens of requests that were admitted before the last
   decrease do not count.
3. The limit grows only while it is in use.
4. The limit never falls below the floor, because so few requests cannot delay each other.

Latencies are measured as ratios to their targets, so that all modes share one limit.
"""

from collections import deque
from statistics import median
from typing import Final

DECREASE: Final = 0.85  # factor of the limit that was too high
RETURN_S: Final = 8.0  # seconds in use until the limit is back at the value that was too high
RESET_AFTER_S: Final = 30.0  # after the last decrease
INITIAL_PER_FLOOR: Final = 32  # initial limit / floor; the first late tokens correct it
_QUEUEING_FACTOR: Final = 1.7  # of the median to the idle ratio; above it, requests queue
_IN_USE_SHARE: Final = 0.8  # of the limit; with fewer requests in flight, it is not in use
_NUM_LATEST: Final = 24  # latencies that are remembered
_MIN_SAMPLES: Final = 8  # for a median
_IDLE_SAMPLE_WEIGHT: Final = 0.05  # of a new sample in the latency of an idle pool
# Limits the idle ratio that a gateway learns if it starts under load.
_MAX_IDLE_RATIO: Final = 0.5


class CubicLimit:
    """The number of requests that may be in flight in one pool. All times are monotonic seconds."""

    def __init__(self, *, floor: int, initial: int | None = None) -> None:
        """`initial` is the first value; None: INITIAL_PER_FLOOR times the floor."""
        self.floor = floor  # follows the number of replicas
        self.initial = initial
        self.value = self._first_value
        self._latest: deque[float] = deque(maxlen=_NUM_LATEST)  # ratios
        self._idle_ratio: float | None = None  # the usual ratio of an idle pool; None: unknown
        self._too_high_limit: float | None = None  # the limit that was too high; None: none was
        self._decreased_s = float("-inf")
        self._used_s = 0.0  # seconds in use since the last decrease
        self._last_update_s = float("-inf")

    @property
    def is_queueing(self) -> bool:
        """True if the latest first tokens took much longer than those of an idle pool."""
        return self._is_slow(list(self._latest))

    def set_bounds(self, *, floor: int, initial: int | None) -> None:
        """Adapt the bounds to the pool's replicas.

        A limit that has changed already is kept, unless it is below the new floor.
        """
        is_untouched = self.value == self._first_value
        self.floor, self.initial = floor, initial
        self.value = self._first_value if is_untouched else max(self.value, float(floor))

    @property
    def _first_value(self) -> float:
        return float(
            INITIAL_PER_FLOOR * self.floor
            if self.initial is None
            else max(self.floor, self.initial)
        )

    def reset(self, now_s: float) -> None:
        """Return to the first value if the last decrease was long ago. Call this periodically."""
        if self._too_high_limit is not None and now_s - self._decreased_s > RESET_AFTER_S:
            self._too_high_limit = None
            self.value = max(self.value, self._first_value)
            self._latest.clear()

    def on_first_token(
        self, ratio: float, *, num_ahead: int, admitted_s: float, now_s: float
    ) -> None:
        """Learn from a first token that arrived, or is overdue, after `ratio` times its target.

        `num_ahead` requests were in flight when the request was admitted.
        """
        self._latest.append(ratio)
        if ratio <= 1.0:
            self._record_idle_ratio(ratio, num_ahead)
            if num_ahead + 1 >= _IN_USE_SHARE * self.value:
                self._grow(now_s)
        # The conditions for a decrease: rules 1 and 2 above.
        elif num_ahead >= self.floor / 2 and admitted_s > self._decreased_s and self.is_queueing:
            self._decrease(min(self.value, num_ahead + 1.0), now_s)

    def on_predicted_late(self, num_in_flight: int, *, epoch_s: float, now_s: float) -> None:
        """Decrease the limit, because a further request would probably be late.

        `num_in_flight` is the number of requests in flight now. The limit does not change within
        `epoch_s` after the last decrease, or if the latest requests were not slow.
        """
        if now_s - self._decreased_s > epoch_s and self._is_slow(
            list(self._latest)[-_MIN_SAMPLES:]
        ):
            self._decrease(min(self.value, float(num_in_flight)), now_s)

    def _is_slow(self, ratios: list[float]) -> bool:
        idle_ratio = (
            _MAX_IDLE_RATIO if self._idle_ratio is None else min(self._idle_ratio, _MAX_IDLE_RATIO)
        )
        return len(ratios) >= _MIN_SAMPLES and median(ratios) > _QUEUEING_FACTOR * idle_ratio

    def _record_idle_ratio(self, ratio: float, num_ahead: int) -> None:
        """Learn from an idle pool, or from a first token that was faster than in an idle pool."""
        if self._idle_ratio is None:
            self._idle_ratio = ratio
        elif num_ahead < self.floor or ratio < self._idle_ratio:
            self._idle_ratio += _IDLE_SAMPLE_WEIGHT * (ratio - self._idle_ratio)

    def _decrease(self, too_high_limit: float, now_s: float) -> None:
        self._too_high_limit = too_high_limit
        self.value = max(float(self.floor), DECREASE * too_high_limit)
        self._decreased_s = self._last_update_s = now_s
        self._used_s = 0.0

    def _grow(self, now_s: float) -> None:
        if self._too_high_limit is None:
            self.value += 1.0
            return
        # A longer pause counts as one second: the limit was not in use, so the curve waited.
        self._used_s += min(now_s - self._last_update_s, 1.0)
        self._last_update_s = now_s
        curve = (self._used_s / RETURN_S - 1.0) ** 3  # from -1; 0 after RETURN_S seconds in use
        self.value = max(self.value, self._too_high_limit * (1.0 + (1.0 - DECREASE) * curve))
