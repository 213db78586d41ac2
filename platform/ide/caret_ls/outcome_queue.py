"""A queue of outcomes. They are sent at once, or as soon as there is a connection.

A connection that ended may have lost its last frames without notice. So recent outcomes are sent
again on the next connection. For this they need the gateway's ID of the request (`request_id`).
Outcomes that were sent twice count once. Without a `request_id`, an outcome that cannot be sent at
once is dropped.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from caret_ls.clock import LoopClock
from caret_ls.frames import Frame

MAX_UNSENT: Final = 256  # outcomes; the oldest are dropped first
MAX_AT_ONCE: Final = 32  # half of the connection's backlog, so that requests fit in, too
# For how long a sent outcome may have to be sent again. A broken connection is noticed after at
# most 40 s: a keep-alive every 20 s, and 20 s for its answer. Sleep of the machine does not count,
# because the monotonic clock stands still, and nothing is sent.
RESEND_WINDOW_S: Final = 60.0


class OutcomeQueue:
    """Sends outcomes by `send_frame`, which returns False if the frame cannot be sent now."""

    def __init__(self, send_frame: Callable[[Frame], bool], clock: LoopClock) -> None:
        self._send_frame = send_frame
        self._clock = clock
        self._unsent: deque[Frame] = deque(maxlen=MAX_UNSENT)
        # Each with the monotonic time at which it was sent, the oldest first.
        self._sent_frames: deque[tuple[float, Frame]] = deque(maxlen=MAX_UNSENT)

    def add(self, frame: Frame) -> None:
        """Send an outcome now, or later if earlier ones wait or it cannot be sent now."""
        if self._unsent or not self._send(frame):
            self._enqueue(frame)

    def flush(self) -> None:
        """Send queued outcomes in order, at most MAX_AT_ONCE. Call it regularly."""
        for _ in range(MAX_AT_ONCE):
            if not self._unsent or not self._send(self._unsent[0]):
                break
            self._unsent.popleft()
        now_s = self._clock.monotonic_s()
        while self._sent_frames and now_s - self._sent_frames[0][0] > RESEND_WINDOW_S:
            self._sent_frames.popleft()

    def on_reconnect(self) -> None:
        """Queue recently sent outcomes again, before those that were not sent, and send some."""
        now_s = self._clock.monotonic_s()
        unconfirmed = [
            frame for sent_s, frame in self._sent_frames if now_s - sent_s <= RESEND_WINDOW_S
        ]
        pending = [*unconfirmed, *self._unsent]
        self._sent_frames.clear()
        self._unsent.clear()
        self._unsent.extend(pending)
        self.flush()

    def clear(self) -> None:
        """Drop all outcomes, because the gateway has changed."""
        self._unsent.clear()
        self._sent_frames.clear()

    def _send(self, frame: Frame) -> bool:
        if not self._send_frame(frame):
            return False
        if _can_send_later(frame):
            self._sent_frames.append((self._clock.monotonic_s(), _without_text(frame)))
        return True

    def _enqueue(self, frame: Frame) -> None:
        if _can_send_later(frame):
            self._unsent.append(_without_text(frame))


def _can_send_later(frame: Frame) -> bool:
    """Return whether the outcome can be sent on a later connection.

    Gateways know the `id` only on the connection of the request, but the `request_id` on each.
    """
    return "request_id" in frame


def _without_text(frame: Frame) -> Frame:
    """Return the frame without the text, which gateways ignore on another connection."""
    return {name: value for name, value in frame.items() if name != "text"}
