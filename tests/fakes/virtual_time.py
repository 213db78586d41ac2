"""An event loop in virtual time: sleeping for an hour takes no longer than a callback."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("every task waits, and no timer is running")
        self.now_s += max(0.0, timeout)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_s


class VirtualClock:
    """The clock of the running loop."""

    def now_ms(self) -> int:
        return round(self.wall_s() * 1000)

    def wall_s(self) -> float:
        return 1_750_000_000.0 + self.monotonic_s()

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()


def run_in_virtual_time(main: Coroutine[Any, Any, _Result]) -> _Result:
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)
