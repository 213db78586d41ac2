"""Slow work is awaited up to a time limit."""

import threading
import time

import pytest

from caret.foundation.concurrency.thread_timeout import run_in_thread_with_timeout


def test_what_is_done_in_time_is_given() -> None:
    assert run_in_thread_with_timeout(5.0, lambda: 7) == 7


def test_what_it_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_in_thread_with_timeout(5.0, lambda: 1 // 0)


def test_what_takes_longer_is_left_behind() -> None:
    released, begun = threading.Event(), time.monotonic()

    with pytest.raises(TimeoutError):
        run_in_thread_with_timeout(0.05, lambda: released.wait(10.0))

    assert time.monotonic() - begun < 5
    released.set()
