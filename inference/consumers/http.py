"""An HTTP exchange in which the client may leave at any moment.

Channels hands over messages one by one: the answer runs as a task of its own, so that a disconnect
is seen while it is under way and ends it at once.
"""

import asyncio
from contextlib import suppress
from typing import Final

import structlog
from channels.exceptions import StopConsumer

from caret.foundation.logs import describe
from inference.completion.client import MAX_SEND_S, ClientGone
from inference.consumers.base import DataPlaneConsumer, Headers, Message

log = structlog.get_logger(__name__)
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
MAX_RECEIVE_S: Final = 10.0  # for the whole body; a client slower than this is not typing


class HttpConsumer(DataPlaneConsumer):
    """Subclasses implement `answer` and `refuse`."""

    def __init__(self) -> None:
        self._body = bytearray()
        self._answering: asyncio.Task[None] | None = None
        self._too_late: asyncio.TimerHandle | None = None

    async def answer(self, body: bytes) -> None:
        """Sends the whole response. Cancelled when the client leaves."""
        raise NotImplementedError

    async def refuse(self, status: int, code: str, message: str) -> None:
        """Sends a whole response in the protocol's own shape of an error."""
        raise NotImplementedError

    async def http_request(self, message: Message) -> None:
        if self._answering is not None:
            return  # already refused; what still comes of the body is dropped
        if self._too_late is None:
            loop = asyncio.get_running_loop()
            self._too_late = loop.call_later(MAX_RECEIVE_S, self._on_too_late)
        self._body += message.get("body", b"")
        if len(self._body) > MAX_BODY_BYTES:
            self._body.clear()
            self._begin_refusal(413, "too_large", f"A body may have {MAX_BODY_BYTES} bytes.")
        elif not message.get("more_body", False):
            self._too_late.cancel()
            self._answering = asyncio.create_task(self._answer(bytes(self._body)))
            self._body.clear()

    async def http_disconnect(self, _message: Message) -> None:
        """The client has left, or the response is complete."""
        if self._too_late is not None:
            self._too_late.cancel()
        if self._answering is not None:
            self._answering.cancel()
            await asyncio.gather(self._answering, return_exceptions=True)
        raise StopConsumer

    async def start(self, status: int, headers: Headers) -> None:
        await self._send_bounded(
            {"type": "http.response.start", "status": status, "headers": headers}
        )

    async def send_part(self, body: bytes, *, is_last: bool = False) -> None:
        """Raises ClientGone when the client has left or does not read."""
        await self._send_bounded(
            {"type": "http.response.body", "body": body, "more_body": not is_last}
        )

    async def send_whole(self, status: int, content_type: bytes, body: bytes) -> None:
        length = str(len(body)).encode()
        await self.start(status, [(b"content-type", content_type), (b"content-length", length)])
        await self.send_part(body, is_last=True)

    async def _answer(self, body: bytes) -> None:
        try:
            await self.answer(body)
        except ClientGone:
            return
        except Exception as defect:  # noqa: BLE001  # the edge: without an answer the client waits
            log.error("http.defect", path=self.scope["path"], **describe(defect))
            with suppress(ClientGone):
                await self.refuse(500, "internal", "Something went wrong.")

    def _on_too_late(self) -> None:
        self._begin_refusal(408, "too_slow", f"The body did not come within {MAX_RECEIVE_S:.0f} s.")

    def _begin_refusal(self, status: int, code: str, message: str) -> None:
        if self._answering is None:
            self._answering = asyncio.create_task(self.refuse(status, code, message))

    async def _send_bounded(self, message: Message) -> None:
        try:
            async with asyncio.timeout(MAX_SEND_S):
                await self.send(message)
        except (OSError, RuntimeError, TimeoutError):
            raise ClientGone from None
