"""The ASGI application of the gateway: its routes and its lifespan."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final

import structlog

from caret.foundation.log_config import describe
from inference.consumers.base import Headers, Message, Receive, Scope, SendMessage, header
from inference.consumers.dialects import (
    llama_cpp_infill,
    mistral_fim,
    ollama_chat,
    ollama_generate,
    openai_chat,
    openai_completions,
)
from inference.consumers.dialects.models_list import (
    MODEL_PATH,
    MODEL_ROUTE,
    ModelConsumer,
    ModelsConsumer,
)
from inference.consumers.dialects.ollama_models import (
    EmbedConsumer,
    RunningModelsConsumer,
    ShowConsumer,
    TagsConsumer,
    VersionConsumer,
)
from inference.consumers.dialects.tabby_events import (
    EventsConsumer,
    ServerSettingConsumer,
    TabbyHealthConsumer,
)
from inference.consumers.http.completions import CompletionConsumer, Dialect
from inference.consumers.http.http_consumer import HealthConsumer, HttpConsumer, NotFoundConsumer
from inference.consumers.http.identical_requests import IdenticalRequests
from inference.consumers.websocket import WebSocketConsumer
from inference.pipeline import DataPlane

# Paths that serve completions.
DIALECTS: Final[Mapping[str, Dialect]] = {
    "/v1/completions": openai_completions.DIALECT,
    "/completions": openai_completions.DIALECT,
    "/beta/completions": openai_completions.DIALECT,
    "/v1/chat/completions": openai_chat.DIALECT,
    "/chat/completions": openai_chat.DIALECT,
    "/v1/fim/completions": mistral_fim.DIALECT,
    "/infill": llama_cpp_infill.DIALECT,
    "/api/generate": ollama_generate.DIALECT,
    "/api/chat": ollama_chat.DIALECT,
}
# All other HTTP paths.
OTHER_CONSUMERS: Final[Mapping[str, type[HttpConsumer]]] = {
    "/v1/models": ModelsConsumer,
    MODEL_ROUTE: ModelConsumer,
    "/v1/health": TabbyHealthConsumer,
    "/v1/events": EventsConsumer,
    "/v1beta/server_setting": ServerSettingConsumer,
    "/api/embed": EmbedConsumer,
    "/api/embeddings": EmbedConsumer,
    "/api/ps": RunningModelsConsumer,
    "/api/show": ShowConsumer,
    "/api/tags": TagsConsumer,
    "/api/version": VersionConsumer,
    "/health": HealthConsumer,
    "/healthz": HealthConsumer,
}
_EXPOSED_HEADERS: Final = b"X-Request-Id, X-Caret-Finish-Reason, Retry-After"
_PREFLIGHT_S: Final = b"600"  # how long browsers cache the response to a preflight
Asgi = Callable[[Scope, Receive, SendMessage], Awaitable[None]]
log = structlog.get_logger(__name__)


class GatewayApplication:
    """Serves all protocols without Django's handler. Opens the data plane at startup."""

    def __init__(
        self,
        open_plane: Callable[[], AbstractAsyncContextManager[DataPlane]],
        *,
        allowed_origins: frozenset[str],
        drain_s: float = 0.0,
    ) -> None:
        self._open_plane = open_plane
        self._allowed_origins = allowed_origins
        self._drain_s = drain_s
        # By scope type ("http" or "websocket") and path; empty before startup.
        self._routes: Mapping[tuple[str, str], Asgi] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
            return
        consumer = self._routes.get((scope["type"], scope["path"])) or self._find_by_prefix(scope)
        if self._allowed_origins and scope["type"] == "http":
            send = _allow_origin(scope, send, self._allowed_origins)
        await consumer(scope, receive, send)

    def _find_by_prefix(self, scope: Scope) -> Asgi:
        """Return the consumer for a model's path, or one that rejects an unknown path."""
        if scope["type"] != "http":
            return _deny_connection
        if scope["path"].startswith(MODEL_PATH):
            return self._routes[("http", MODEL_ROUTE)]
        return _not_found

    async def _serve_lifespan(self, receive: Receive, send: SendMessage) -> None:
        await receive()  # lifespan.startup
        async with AsyncExitStack() as stack:
            try:
                self._routes = self._build_routes(
                    await stack.enter_async_context(self._open_plane())
                )
            except Exception as error:
                log.error("gateway.not_started", reason=str(error), **describe(error))
                await send({"type": "lifespan.startup.failed", "message": ""})
                raise
            await send({"type": "lifespan.startup.complete"})
            await receive()  # lifespan.shutdown
        await send({"type": "lifespan.shutdown.complete"})

    def _build_routes(self, plane: DataPlane) -> Mapping[tuple[str, str], Asgi]:
        stream = WebSocketConsumer.as_asgi(
            plane=plane, allowed_origins=self._allowed_origins, drain_s=self._drain_s
        )
        identical_requests = IdenticalRequests()
        completions = {
            path: CompletionConsumer.as_asgi(
                plane=plane, dialect=dialect, identical_requests=identical_requests
            )
            for path, dialect in DIALECTS.items()
        }
        others = {
            path: consumer_class.as_asgi(plane=plane)
            for path, consumer_class in OTHER_CONSUMERS.items()
        }
        http = {("http", path): consumer for path, consumer in (completions | others).items()}
        return {("websocket", "/v1/stream"): stream, **http}


def _allow_origin(scope: Scope, send: SendMessage, allowed_origins: frozenset[str]) -> SendMessage:
    """Return a `send` that adds the headers for cross-origin requests, if the origin is allowed.

    Without these headers, a browser hides the response from the page. The headers never allow
    cookies, because the gateway reads none: a page must send an API key.
    """
    origin = header(scope, b"origin")
    if origin is None or origin not in allowed_origins:
        return send
    headers: Headers = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _EXPOSED_HEADERS),
        (b"vary", b"Origin"),
    ]
    method = header(scope, b"access-control-request-method")
    if scope["method"] == "OPTIONS" and method is not None:  # a preflight
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


async def _deny_connection(_scope: Scope, receive: Receive, send: SendMessage) -> None:
    await receive()  # websocket.connect
    await send({"type": "websocket.close"})


_not_found: Final[Asgi] = NotFoundConsumer.as_asgi()
