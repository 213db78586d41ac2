"""A guard around code that hostile input could make run for very long."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooLong(Exception):
    """Raised inside the code when its time is over."""


@contextmanager
def cpu_guard(limit_s: int = 5) -> Iterator[None]:
    """Limit the CPU time of a block, so that a busy machine makes no difference.

    The limit is generous: the attacks would take minutes. A running `re` match is interrupted too.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
