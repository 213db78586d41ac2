"""Lets threads of an application tell the server that a request had a valid credential.

Code that verifies a credential calls `note_credential` in its thread. When the response starts, the
middleware reads the note on the event loop, and marks the connection as authenticated.
"""

from collections.abc import Mapping
from typing import Any, Final

from caret.foundation.web.body_limit import Application, Receive, Send
from caret.foundation.web.connections import mark_connection_authenticated

_NOTE: Final = "has_credential"  # in the state of an ASGI scope


def note_credential(request: object) -> None:
    """Mark a Django request, from any thread; do nothing if no ASGI server received it."""
    scope = getattr(request, "scope", None)
    if scope is not None:
        scope.setdefault("state", {})[_NOTE] = True


class CredentialNoteMiddleware:
    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        async def watching_send(event: Mapping[str, Any]) -> None:
            if event["type"] == "http.response.start" and scope.get("state", {}).get(_NOTE):
                mark_connection_authenticated(scope)
            await send(event)

        await self._application(scope, receive, watching_send)
