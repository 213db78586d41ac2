"""Bounded waits for other processes."""

import time
from collections.abc import Callable

_POLL_S = 0.05


def wait_until(condition: Callable[[], bool], *, timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, (
            f"the condition did not become true within {timeout_s} s"
        )
        time.sleep(_POLL_S)
