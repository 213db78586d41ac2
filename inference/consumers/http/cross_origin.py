"""Cross-origin requests of browsers (CORS), for the origins of CARET_ALLOWED_ORIGINS.

A response without these headers is hidden from the page that sent the request. Credentials are
never allowed: a page has to send an API key, and the gateway reads no cookies.
"""

from typing import Final

from inference.consumers.base import Headers, Message, Scope, SendMessage, header

_EXPOSED: Final = b"X-Request-Id, X-Caret-Finish-Reason, Retry-After"
_PREFLIGHT_S: Final = b"600"  # how long browsers keep the answer to a preflight


def allow_origin(scope: Scope, send: SendMessage, allowed_origins: frozenset[str]) -> SendMessage:
    """Return a `send` that adds the headers, if the origin is allowed."""
    origin = header(scope, b"origin")
    if origin is None or origin not in allowed_origins:
        return send
    headers: Headers = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"Origin"),
    ]
    method = header(scope, b"access-control-request-method")
    if scope["method"] == "OPTIONS" and method is not None:
        requested = header(scope, b"access-control-request-headers") or ""
        headers += [
            (b"access-control-allow-methods", b"GET, POST"),
            (b"access-control-allow-headers", requested.encode("latin-1")),
            (b"access-control-max-age", _PREFLIGHT_S),
        ]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *headers]}
        await send(message)

    return send_with_headers
