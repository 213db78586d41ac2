"""Slow work is awaited up to a time limit."""

import threading
import time

import pytest

from caret.foundation.concurrency.thread_timeout import run_in_thread_with_timeout


def test_the_result_is_returned() -> None:
    assert run_in_thread_with_timeout(5.0, lambda: 7) == 7


def test_an_exception_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_in_thread_with_timeout(5.0, lambda: 1 // 0)


def test_work_that_takes_too_long_is_abandoned() -> None:
    released, started_s = threading.Event(), time.monotonic()

    with pytest.raises(TimeoutError):
        run_in_thread_with_timeout(0.05, lambda: released.wait(10.0))

    assert time.monotonic() - started_s < 5
    released.set()
