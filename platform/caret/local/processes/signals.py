"""Turns Ctrl-C, SIGTERM and a closed terminal into an exception, for an orderly shutdown."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ShutdownRequested(BaseException):
    """A signal requests shutdown. Not an Exception, so that no error handler catches it."""


@contextmanager
def raise_on_stop_signals() -> Iterator[None]:
    """Raise ShutdownRequested at the first signal, at any point of the block; ignore later ones.

    If a child is launched at that moment, the supervisor may not know of it. The watchdog finds the
    child by its tag and ends it.
    """

    def request_shutdown(*_: object) -> None:
        for number in _STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise ShutdownRequested

    previous_handlers = {
        number: signal.signal(number, request_shutdown) for number in _STOP_SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
