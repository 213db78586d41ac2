"""An HTTP exchange in which the client may disconnect at any time.

Channels delivers the client's messages one by one. The response is therefore a separate task: the
consumer can notice a disconnect during the response, and cancels the response at once.
"""

import asyncio
import math
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Final

import structlog
from channels.exceptions import StopConsumer

from caret.foundation.concurrency.fast_timeout import run_with_timeout
from caret.foundation.ids import new_request_id
from caret.foundation.log_config import describe
from inference.completion.response_writer import MAX_SEND_S, ClientDisconnected
from inference.consumers.base import (
    DataPlaneConsumer,
    Header,
    Headers,
    Message,
    Receive,
    Scope,
    SendMessage,
)
from inference.consumers.http.openai_schemas import error_body
from inference.errors import BadRequest, CompletionError, UnauthenticatedRequest
from inference.pipeline import DataPlane

log = structlog.get_logger(__name__)
MAX_RECEIVE_S: Final = 10.0  # for the whole body; slower clients would get completions too late
_JSON: Final = b"application/json"


class HttpConsumer(DataPlaneConsumer):
    """Base of the HTTP consumers.

    Subclasses implement `respond` and `encode_error`. If they require an API key, they also
    implement `authorize`.
    """

    max_body_bytes = 0  # most endpoints accept no body
    methods: tuple[bytes, ...] = ()  # the allowed HTTP methods; empty: all

    def __init__(self) -> None:
        self.request_id = new_request_id()  # in the header X-Request-Id
        self._body = bytearray()
        self._reading: asyncio.Task[None]  # reads the client's messages until the response ends
        self._responding: asyncio.Task[None] | None = None  # None: no response has begun
        self._body_timer: asyncio.TimerHandle | None = None

    def authorize(self) -> None:
        """Check the headers before the body is read. Raises CompletionError."""

    def reserve_body(self, num_bytes: int) -> None:
        """Reserve quota for bytes of the body, before they are kept. Raises CompletionError."""

    def release_body(self, num_bytes: int) -> None:
        """Release reserved quota when the body is complete, or is dropped."""

    async def respond(self, body: bytes) -> None:
        """Send the whole response. The task is cancelled if the client disconnects.

        May raise CompletionError, but only before it has sent anything.
        """
        raise NotImplementedError

    def encode_error(self, error: CompletionError) -> bytes:
        """Return the error as JSON in the protocol's own format."""
        raise NotImplementedError

    async def send_error(self, error: CompletionError) -> None:
        """Send an error as the whole response. Raises ClientDisconnected."""
        headers: Headers = []
        if error.code == "method_not_allowed":
            headers.append(self._allow_header)
        if error.http_status == HTTPStatus.UNAUTHORIZED:
            headers.append(_challenge(error))
        if error.retry_after_s is not None:
            # Round up: a client that retries too early is rejected again.
            headers.append((b"retry-after", str(math.ceil(error.retry_after_s)).encode()))
        await self.send_response(error.http_status, _JSON, self.encode_error(error), headers)

    async def __call__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        """Run until the response is sent or the client disconnects."""
        self._reading = asyncio.create_task(super().__call__(scope, receive, send))
        # If this task is cancelled, gather cancels the reading task and waits for its end.
        await asyncio.gather(self._reading, return_exceptions=True)

    def on_connect(self) -> None:
        """Start the body's timeout. Respond to OPTIONS and to clients that are not authorized.

        These clients get the response before they send a body.
        """
        loop = asyncio.get_running_loop()
        self._body_timer = loop.call_later(MAX_RECEIVE_S, self._on_body_timeout)
        if self.scope["method"] == "OPTIONS" and self.methods:
            self._start_responding(self._send_options())  # preflights of browsers have no key
        else:
            self._reject_unauthorized()

    async def http_request(self, message: Message) -> None:
        if self._responding is not None:
            return  # the response has begun, usually an error; the rest of the body is dropped
        try:
            self._buffer_body(message.get("body", b""))
        except CompletionError as error:
            self._respond_with_error(error)
            return
        if not message.get("more_body", False):
            self._start_responding(self.respond(bytes(self._body)))

    async def http_disconnect(self, _message: Message) -> None:
        raise StopConsumer

    async def release(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
        self._drop_body()
        if self._responding is not None:
            self._responding.cancel()
            await asyncio.gather(self._responding, return_exceptions=True)

    async def start_response(self, status: int, headers: Headers) -> None:
        """Send the status and the headers. Raises ClientDisconnected."""
        all_headers = [*headers, (b"x-request-id", self.request_id.encode())]
        await self._send_bounded(
            {"type": "http.response.start", "status": status, "headers": all_headers}
        )

    async def send_body_part(self, body: bytes, *, is_last: bool = False) -> None:
        """Send a part of the body. Raises ClientDisconnected."""
        await self._send_bounded(
            {"type": "http.response.body", "body": body, "more_body": not is_last}
        )

    async def send_json(self, body: bytes, headers: Sequence[Header] = ()) -> None:
        """Send JSON as the whole response, with the status 200. Raises ClientDisconnected."""
        await self.send_response(200, _JSON, body, headers)

    async def send_response(
        self, status: int, content_type: bytes, body: bytes, headers: Sequence[Header] = ()
    ) -> None:
        """Send the whole response. Raises ClientDisconnected."""
        length = str(len(body)).encode()
        all_headers = [(b"content-type", content_type), (b"content-length", length), *headers]
        await self.start_response(status, all_headers)
        await self.send_body_part(body, is_last=True)

    def _buffer_body(self, part: bytes) -> None:
        """Keep a part of the body. Raises CompletionError."""
        if len(self._body) + len(part) > self.max_body_bytes:
            message = f"A body must have at most {self.max_body_bytes} bytes."
            raise BadRequest("too_large", message, http_status=413)
        self.reserve_body(len(part))
        self._body += part

    def _drop_body(self) -> None:
        if self._body:
            self.release_body(len(self._body))
            self._body.clear()

    def _reject_unauthorized(self) -> None:
        try:
            self._check_method()
            self.authorize()
        except CompletionError as error:
            self._respond_with_error(error)

    def _check_method(self) -> None:
        method = self.scope["method"].encode()
        if method == b"HEAD":  # handled as GET: the server sends only the headers of the response
            method = b"GET"
        if self.methods and method not in self.methods:
            methods = b" or ".join(self.methods).decode()
            raise BadRequest("method_not_allowed", f"Use the method {methods}.", http_status=405)

    async def _send_options(self) -> None:
        await self.start_response(HTTPStatus.NO_CONTENT, [self._allow_header])
        await self.send_body_part(b"", is_last=True)

    @property
    def _allow_header(self) -> Header:
        head = [b"HEAD"] if b"GET" in self.methods else []
        return b"allow", b", ".join([*self.methods, *head, b"OPTIONS"])

    def _on_body_timeout(self) -> None:
        message = f"The body did not arrive within {MAX_RECEIVE_S:.0f} s."
        self._respond_with_error(BadRequest("too_slow", message, http_status=408))

    def _respond_with_error(self, error: CompletionError) -> None:
        self._start_responding(self.send_error(error))

    def _start_responding(self, response: Coroutine[None, None, None]) -> None:
        """Start to respond. Only the first call counts."""
        if self._responding is not None:
            response.close()  # without this, Python warns that it was never awaited
            return
        self._drop_body()
        self._responding = asyncio.create_task(self._run_response(response))

    async def _run_response(self, response: Coroutine[None, None, None]) -> None:
        try:
            await self._respond_or_send_error(response)
        except ClientDisconnected:
            return
        except Exception as defect:  # noqa: BLE001  # the edge: the client waits for a response
            log.error("http.internal_error", path=self.scope["path"], **describe(defect))
            with suppress(ClientDisconnected):
                await self.send_error(CompletionError("internal_error", "Something went wrong."))
        finally:
            self._reading.cancel()  # ends `__call__`

    async def _respond_or_send_error(self, response: Coroutine[None, None, None]) -> None:
        try:
            await response
        except CompletionError as error:
            await self.send_error(error)

    async def _send_bounded(self, message: Message) -> None:
        try:
            await run_with_timeout(MAX_SEND_S, self.send(message))
        except (OSError, RuntimeError, TimeoutError):
            # The server reports a closed connection by an OSError or a RuntimeError.
            raise ClientDisconnected from None


def _challenge(error: CompletionError) -> Header:
    """Return the header that names the authentication scheme (RFC 6750)."""
    reason = "" if error.code == "missing_api_key" else ', error="invalid_token"'
    return b"www-authenticate", f'Bearer realm="Caret"{reason}'.encode()


class NotFoundConsumer(HttpConsumer):
    """Rejects requests for paths that do not exist."""

    def authorize(self) -> None:
        raise BadRequest("not_found", "This path does not exist.", http_status=404)

    def encode_error(self, error: CompletionError) -> bytes:
        return error_body(error)


class HealthConsumer(HttpConsumer):
    """Reports whether the gateway can verify API keys. Needs no API key."""

    def __init__(self, plane: DataPlane) -> None:
        super().__init__()
        self._plane = plane

    async def respond(self, _body: bytes) -> None:
        if not self._plane.snapshots.is_fresh():
            # The message is empty, because `encode_error` sends only the code.
            raise UnauthenticatedRequest("snapshots_stale", "", http_status=503)
        await self.send_json(b'{"status":"ok"}')

    def encode_error(self, error: CompletionError) -> bytes:
        return b'{"status":"' + error.code.encode() + b'"}'
