"""Tell the server that a request carried a valid credential, from an application with threads.

A view that has verified one calls `note_credential` in its thread. The middleware sees the note
when the response starts, on the event loop, where the connection's bounds are kept.
"""

from collections.abc import Mapping
from typing import Any, Final

from caret.foundation.web.body_limit import Application, Receive, Send
from caret.foundation.web.connections import authenticate_connection

_NOTE: Final = "has_credential"


def note_credential(request: object) -> None:
    """Of a Django request, from any thread; one that came without an ASGI server has no scope."""
    scope = getattr(request, "scope", None)
    if scope is not None:
        scope.setdefault("state", {})[_NOTE] = True


class CredentialNotes:
    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        async def watched(event: Mapping[str, Any]) -> None:
            if event["type"] == "http.response.start" and scope.get("state", {}).get(_NOTE):
                authenticate_connection(scope)
            await send(event)

        await self._application(scope, receive, watched)
