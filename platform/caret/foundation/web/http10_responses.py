"""Responses to HTTP/1.0 clients, which know no chunks: the end of the connection ends the body.

uvicorn sends every body without a length in chunks, whatever the client's version. It closes the
connection of each HTTP/1.0 request after the response.
"""

from uvicorn._types import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    Scope,
)
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


def adapt_to_version(app: ASGI3Application, cycle: RequestResponseCycle) -> ASGI3Application:
    """Return the application, without chunks if the request is one of HTTP/1.0."""
    if cycle.scope["http_version"] != "1.0":
        return app

    async def respond(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        has_length = True

        async def send_unframed(message: ASGISendEvent) -> None:
            nonlocal has_length
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message.get("headers", ())}
                has_length = b"content-length" in names
                if not has_length:
                    cycle.chunked_encoding = False
            elif message["type"] == "http.response.body" and not has_length:
                # uvicorn compares each part with the length that it expects to be left.
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await app(scope, receive, send_unframed)

    return respond
