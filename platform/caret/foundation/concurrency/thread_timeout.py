"""Waits for so long, and no longer, for work that takes no deadline itself."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Result = TypeVar("_Result")


def run_in_thread_with_timeout(seconds: float, work: Callable[[], _Result]) -> _Result:
    """Work that is not done by then goes on in a thread of its own, and nobody learns of its end:
    only for what ends by itself and changes nothing of ours. Raises TimeoutError, and what it
    raises."""
    outcome: Future[_Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001  # raised where it is waited for
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome.result(timeout=seconds)
