"""Liveness and readiness endpoints, answered before any other middleware.

The application does not answer them: it may be busy, or reject the probe's host name.

    /healthz  liveness: this process responds. Postgres is not checked, because a restart of this
              process would not help
    /readyz   readiness: the dependencies of this process respond, too. If they do not, a load
              balancer should send this process no requests
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from caret.foundation.web.body_limit import Application, Receive, Send

ReadyCheck: TypeAlias = Callable[[], Awaitable[bool]]  # must not raise an error

ALIVE_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
READY_TIMEOUT_S: Final = 2.0
# Anybody may call /readyz. A result is reused for this time, so that callers cannot overload the
# dependencies with checks.
_RESULT_TTL_S: Final = 1.0
_BODIES: Final = {200: b"ok\n", 503: b"not ready\n"}


class HealthCheckMiddleware:
    def __init__(
        self,
        application: Application,
        is_ready: ReadyCheck,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application = application
        self._is_ready = is_ready
        self._monotonic_s = monotonic_s
        self._running_check: asyncio.Task[bool] | None = None
        # The result, and the monotonic time at which it expires: at first, long ago.
        self._cached_result: tuple[bool, float] = (False, float("-inf"))

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        is_health_check = scope["type"] == "http" and scope["path"] in (ALIVE_PATH, READY_PATH)
        if not is_health_check or scope["method"] not in ("GET", "HEAD"):
            await self._application(scope, receive, send)
            return
        is_healthy = scope["path"] == ALIVE_PATH or await self._check_ready()
        await _send_response(scope, send, 200 if is_healthy else 503)

    async def _check_ready(self) -> bool:
        is_ready, expires_s = self._cached_result
        if self._monotonic_s() < expires_s:
            return is_ready
        # All callers share one running check, even if it hangs. `shield` keeps the check running if
        # one of its callers disconnects.
        if self._running_check is None:
            self._running_check = asyncio.create_task(self._run_check())
        try:
            return await asyncio.wait_for(asyncio.shield(self._running_check), READY_TIMEOUT_S)
        except TimeoutError:
            return False

    async def _run_check(self) -> bool:
        try:
            is_ready = await self._is_ready()
            self._cached_result = (is_ready, self._monotonic_s() + _RESULT_TTL_S)
            return is_ready
        finally:
            self._running_check = None


async def _send_response(scope: dict[str, Any], send: Send, status: int) -> None:
    body = _BODIES[status]
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body if scope["method"] == "GET" else b""})
