"""A guard around work that would block the event loop on an input made for that."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooLong(Exception):
    """Raised where the work was under way."""


@contextmanager
def cpu_guard(limit_s: int = 5) -> Iterator[None]:
    """Of processor time, so that a busy machine makes no difference. Generous: what it stands
    against would take minutes. An expression of `re` is interrupted as well."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
