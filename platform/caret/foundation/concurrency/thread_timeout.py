"""A timeout for blocking work that accepts no deadline itself."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Result = TypeVar("_Result")


def run_in_thread_with_timeout(seconds: float, work: Callable[[], _Result]) -> _Result:
    """Run `work` in a new thread, and wait at most `seconds` for its result.

    After a timeout, the work continues in its thread, and its result is lost. So use this only for
    work that ends by itself and has no side effects. Raises TimeoutError, and all errors of `work`.
    """
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  # raised again in the caller
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result(timeout=seconds)
