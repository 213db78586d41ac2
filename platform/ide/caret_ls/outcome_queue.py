"""Outcomes on their way to the gateway: told at once, else as soon as there is a connection.

A connection that has ended may have lost what went into it last, and nobody says so. What was told
shortly before is told again on the next one, by its `request_id`; what came twice counts once.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from caret_ls.clock import LoopClock
from caret_ls.frames import Frame

MAX_UNTOLD: Final = 256  # the oldest go first
MAX_AT_ONCE: Final = 32  # half of what the link has room for: requests go over it, too
# A connection that is cut off silently lives until its keep-alive gives up: twice 20 s. The clock
# stands while the machine sleeps, as nothing is told then.
RESEND_WINDOW_S: Final = 60.0


class OutcomeQueue:
    """`tell` says whether there was a connection with room."""

    def __init__(self, tell: Callable[[Frame], bool], clock: LoopClock) -> None:
        self._tell = tell
        self._clock = clock
        self._untold: deque[Frame] = deque(maxlen=MAX_UNTOLD)
        self._told: deque[tuple[float, Frame]] = deque(maxlen=MAX_UNTOLD)

    def add(self, frame: Frame) -> None:
        if self._untold or not self._send(frame):
            self._enqueue(frame)

    def flush(self) -> None:
        """What waits, in its order, as far as there is room. To be called now and then."""
        for _ in range(MAX_AT_ONCE):
            if not self._untold or not self._send(self._untold[0]):
                break
            self._untold.popleft()
        now_s = self._clock.monotonic_s()
        while self._told and now_s - self._told[0][0] > RESEND_WINDOW_S:
            self._told.popleft()

    def on_reconnect(self) -> None:
        now_s = self._clock.monotonic_s()
        doubtful = [frame for told_s, frame in self._told if now_s - told_s <= RESEND_WINDOW_S]
        waiting = [*doubtful, *self._untold]
        self._told.clear()
        self._untold.clear()
        self._untold.extend(waiting)
        self.flush()

    def clear(self) -> None:
        """It is another gateway's business from here on."""
        self._untold.clear()
        self._told.clear()

    def _send(self, frame: Frame) -> bool:
        if not self._tell(frame):
            return False
        if _is_known_elsewhere(frame):
            self._told.append((self._clock.monotonic_s(), _without_text(frame)))
        return True

    def _enqueue(self, frame: Frame) -> None:
        if _is_known_elsewhere(frame):
            self._untold.append(_without_text(frame))


def _is_known_elsewhere(frame: Frame) -> bool:
    """Another connection knows nothing of the `id`."""
    return "request_id" in frame


def _without_text(frame: Frame) -> Frame:
    """A gateway drops it where it does not know whose the completion was."""
    return {name: value for name, value in frame.items() if name != "text"}
