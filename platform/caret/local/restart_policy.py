"""Decides when to restart a dead service, and when to give up. Pure: time is passed in."""

from collections import deque
from dataclasses import dataclass, field

MAX_DEATHS = 6
WINDOW_S = 120.0
_FIRST_DELAY_S = 0.2


@dataclass(slots=True)
class RestartPolicy:
    """The recent deaths of one service."""

    _deaths_s: deque[float] = field(default_factory=deque)

    def next_delay_s(self, now_s: float) -> float | None:
        """Return the seconds to wait, doubled with each recent death; None means give up."""
        while self._deaths_s and now_s - self._deaths_s[0] > WINDOW_S:
            self._deaths_s.popleft()
        self._deaths_s.append(now_s)
        if len(self._deaths_s) > MAX_DEATHS:
            return None
        return float(_FIRST_DELAY_S * 2 ** (len(self._deaths_s) - 1))
