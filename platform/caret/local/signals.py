"""Ctrl-C, SIGTERM and a closed terminal all mean: stop everything, in order."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ShutdownRequested(BaseException):
    """Not an Exception: no handler of errors on the way may swallow it."""


@contextmanager
def raise_on_stop_signals() -> Iterator[None]:
    """The first signal raises ShutdownRequested wherever the program is; later ones change nothing.

    A child that is launched in that very moment may be missed by the supervisor. The watchdog ends
    it, because it carries the mark.
    """

    def request(*_: object) -> None:
        for number in _NUMBERS:
            signal.signal(number, signal.SIG_IGN)
        raise ShutdownRequested

    before = {number: signal.signal(number, request) for number in _NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
