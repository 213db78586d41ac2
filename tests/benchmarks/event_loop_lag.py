"""The unchanged gateway with a probe of its event loop: how late do scheduled callbacks run?

`python -m tests.benchmarks.event_loop_lag` replaces `manage.py gateway`. The path
`/benchmark/stalls` returns the stalls since the last request for it.
"""

import asyncio
import sys
import time
from typing import Final

import msgspec

from caret.composition.gateway_app import build_gateway_application
from caret.gateway_server import main
from inference.consumers.base import Receive, Scope, SendMessage

PATH: Final = "/benchmark/stalls"
_PROBE_INTERVAL_S: Final = 0.005


class Stalls(msgspec.Struct):
    """The stalls of one period. A stall is the delay with which the loop runs the probe."""

    max_ms: float = 0.0
    # the largest CPU time of the loop's thread between scheduling the probe and running it
    max_busy_ms: float = 0.0
    num_over_20_ms: int = 0


class ProbedApplication:
    def __init__(self) -> None:
        self._application = build_gateway_application()
        self._stalls = Stalls()
        self._due_s = 0.0  # when the probe is due
        self._scheduled_cpu_s = 0.0  # the thread's CPU time when the probe was scheduled

    async def __call__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        if scope["type"] == "lifespan":
            self._schedule_probe()
        elif scope["path"] == PATH:
            await self._send_stalls(send)
            return
        await self._application(scope, receive, send)

    def _schedule_probe(self) -> None:
        self._due_s = time.monotonic() + _PROBE_INTERVAL_S
        self._scheduled_cpu_s = time.thread_time()
        asyncio.get_running_loop().call_later(_PROBE_INTERVAL_S, self._measure_lag)

    def _measure_lag(self) -> None:
        late_ms = (time.monotonic() - self._due_s) * 1000
        busy_ms = (time.thread_time() - self._scheduled_cpu_s) * 1000
        stalls = self._stalls
        stalls.max_ms = max(stalls.max_ms, late_ms)
        stalls.max_busy_ms = max(stalls.max_busy_ms, busy_ms)
        stalls.num_over_20_ms += late_ms > 20
        self._schedule_probe()

    async def _send_stalls(self, send: SendMessage) -> None:
        body, self._stalls = msgspec.json.encode(self._stalls), Stalls()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    sys.exit(main("tests.benchmarks.event_loop_lag:ProbedApplication"))
