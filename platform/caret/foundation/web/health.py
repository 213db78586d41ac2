"""Answers the probe before anything that may be busy, or choosy about hosts, is asked.

Whether this process answers, nothing else: a console restarted does not mend Postgres.
"""

from typing import Any, Final

from caret.foundation.web.body_limit import Application, Receive, Send

PATH: Final = "/healthz"
_OK: Final = b"ok\n"
_HEADERS: Final = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", str(len(_OK)).encode()),
    (b"cache-control", b"no-store"),
]


class Health:
    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        is_asked = scope["type"] == "http" and scope["path"] == PATH
        if not is_asked or scope["method"] not in ("GET", "HEAD"):
            await self._application(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        body = _OK if scope["method"] == "GET" else b""
        await send({"type": "http.response.body", "body": body})
