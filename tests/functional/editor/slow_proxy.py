"""A proxy to the gateway that delays or drops responses."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

_SUBPROTOCOL = Subprotocol("caret.v1")


@dataclass(slots=True)
class SlowProxy:
    """Records the requests of an editor, and delays the responses of the gateway."""

    gateway_url: str
    url: str = ""
    delay_s: float | None = 0.0  # of a completion's frames; None: they never arrive
    # The time of arrival in monotonic seconds, and the frame.
    requests: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    cancelled_ids: list[str] = field(default_factory=list)

    async def serve(self, editor: ServerConnection) -> None:
        assert editor.request is not None
        authorization = editor.request.headers["Authorization"]
        url = self.gateway_url.replace("http", "ws", 1) + "/v1/stream"
        headers = {"Authorization": authorization}
        async with (
            _until_disconnected(),
            connect(
                url, subprotocols=[_SUBPROTOCOL], additional_headers=headers, max_size=None
            ) as gateway,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(self._forward_requests(editor, gateway))
            group.create_task(self._forward_responses(gateway, editor, group))

    async def _forward_requests(self, editor: ServerConnection, gateway: ClientConnection) -> None:
        async for text in editor:
            frame = json.loads(text)
            if frame["type"] == "complete":
                self.requests.append((time.monotonic(), frame))
            elif frame["type"] == "cancel":
                self.cancelled_ids.append(frame["id"])
            await gateway.send(text)
        await gateway.close()

    async def _forward_responses(
        self, gateway: ClientConnection, editor: ServerConnection, group: asyncio.TaskGroup
    ) -> None:
        """Forward frames of completions with the delay, and all other frames at once."""
        async for text in gateway:
            is_delayed = json.loads(text)["type"] in ("delta", "done")
            if not is_delayed:
                await editor.send(text)
            elif self.delay_s is not None:
                group.create_task(_send_later(editor, text, self.delay_s))
        await editor.close()


async def _send_later(editor: ServerConnection, text: str | bytes, delay_s: float) -> None:
    await asyncio.sleep(delay_s)
    await editor.send(text)


@asynccontextmanager
async def _until_disconnected() -> AsyncIterator[None]:
    """Suppress the error of a closed connection.

    The error ends the block. Frames that are still delayed are lost.
    """
    try:
        yield
    except* ConnectionClosed:
        pass


@asynccontextmanager
async def slow_proxy(gateway_url: str) -> AsyncIterator[SlowProxy]:
    proxy = SlowProxy(gateway_url)
    async with serve(
        proxy.serve, "127.0.0.1", 0, subprotocols=[_SUBPROTOCOL], max_size=None
    ) as server:
        proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield proxy
