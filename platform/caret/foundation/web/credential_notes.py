"""Lets threads of an application tell the server that a request had a valid credential.

A view that verifies a credential calls `note_credential` in its thread. The middleware reads the
note on the event loop when the response starts, and updates the connection there.
"""

from collections.abc import Mapping
from typing import Any, Final

from caret.foundation.web.body_limit import Application, Receive, Send
from caret.foundation.web.connections import mark_connection_authenticated

_NOTE: Final = "has_credential"


def note_credential(request: object) -> None:
    """Mark a Django request, from any thread; do nothing if no ASGI server received it."""
    scope = getattr(request, "scope", None)
    if scope is not None:
        scope.setdefault("state", {})[_NOTE] = True


class CredentialNotes:
    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        async def watching_send(event: Mapping[str, Any]) -> None:
            if event["type"] == "http.response.start" and scope.get("state", {}).get(_NOTE):
                mark_connection_authenticated(scope)
            await send(event)

        await self._application(scope, receive, watching_send)
