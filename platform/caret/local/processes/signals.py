"""Turns Ctrl-C, SIGTERM and a closed terminal into an exception, for an orderly shutdown."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ShutdownRequested(BaseException):
    """A signal requests shutdown. Not an Exception, so that no error handler catches it."""


@contextmanager
def raise_on_stop_signals() -> Iterator[None]:
    """Raise ShutdownRequested at the first signal, wherever the program is; ignore later ones.

    The supervisor may miss a child that is launched at that moment. The watchdog ends it by its
    tag.
    """

    def request(*_: object) -> None:
        for number in _NUMBERS:
            signal.signal(number, signal.SIG_IGN)
        raise ShutdownRequested

    previous_handlers = {number: signal.signal(number, request) for number in _NUMBERS}
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
