"""Rejects request bodies above a size limit before Django stores them.

Django's ASGI handler writes a whole body to disk before it checks its own limits.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

_TOO_LARGE: Final = b'{"status":413,"code":"too_large","detail":"The body is too large."}'


class _TooLarge(Exception):
    pass


class BodyLimitMiddleware:
    def __init__(self, application: Application, *, max_bytes: int) -> None:
        self._application = application
        self._max_bytes = max_bytes

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        num_bytes = 0

        async def counting_receive() -> Mapping[str, Any]:
            nonlocal num_bytes
            event = await receive()
            if event["type"] == "http.request":
                num_bytes += len(event.get("body", b""))
            if num_bytes > self._max_bytes:
                raise _TooLarge
            return event

        try:
            await self._application(scope, counting_receive, send)
        except _TooLarge:
            # Raised while the body is read, so no response has started.
            await _refuse(send)


async def _refuse(send: Send) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": 413,
            "headers": [(b"content-type", b"application/problem+json"), (b"connection", b"close")],
        }
    )
    await send({"type": "http.response.body", "body": _TOO_LARGE, "more_body": False})
