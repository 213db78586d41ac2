"""A client of the stream protocol (platform/docs/protocol.md)."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

Frame = dict[str, Any]


class GatewayRefused(Exception):
    """The gateway rejected or ended a request or a connection. `code` is an error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class CompletionStream:
    """An open connection. Frames are decoded JSON objects."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, frame: Frame) -> None:
        """Send a frame.

        Raises GatewayRefused if the connection has ended.
        """
        try:
            await self._socket.send(json.dumps(frame))
        except ConnectionClosed as error:
            raise _to_refusal(error) from error

    async def receive(self) -> Frame:
        """Wait for the next frame, and return it.

        Raises GatewayRefused if the connection has ended.
        """
        try:
            frame: Frame = json.loads(await self._socket.recv())
        except ConnectionClosed as error:
            raise _to_refusal(error) from error
        return frame

    async def complete(self, frame: Frame) -> AsyncIterator[Frame]:
        """Request a completion and yield its frames; the last one has the type `done`.

        `frame` has all fields of the request except `type`. Raises GatewayRefused.
        """
        await self.send({"type": "complete", **frame})
        while True:
            received_frame = await self.receive()
            # An error frame without an ID: the gateway could not read the ID of our frame.
            if received_frame.get("id") not in (frame["id"], ""):
                continue
            if received_frame["type"] == "error":
                raise GatewayRefused(received_frame["code"], received_frame["message"])
            yield received_frame
            if received_frame["type"] == "done":
                return


@asynccontextmanager
async def open_stream(gateway_url: str, api_key: str) -> AsyncIterator[CompletionStream]:
    """Connect to `gateway_url`, such as http://127.0.0.1:8401.

    Raises GatewayRefused, OSError.
    """
    # http becomes ws, and https becomes wss.
    url = gateway_url.replace("http", "ws", 1).rstrip("/") + "/v1/stream"
    headers = {"Authorization": f"Bearer {api_key}"}
    try:
        async with connect(
            url,
            subprotocols=["caret.v1"],  # type: ignore[list-item]  # Subprotocol is a NewType
            additional_headers=headers,
            compression=None,
            max_size=None,
            proxy=None,
        ) as socket:
            yield CompletionStream(socket)
    except InvalidStatus as error:
        raise _read_refusal(bytes(error.response.body or b"")) from error
    except (InvalidHandshake, InvalidURI) as error:
        raise GatewayRefused("no_gateway", f"There is no gateway at {gateway_url}.") from error


def _to_refusal(error: ConnectionClosed) -> GatewayRefused:
    return GatewayRefused("connection_closed", f"The connection ended: {error}.")


def _read_refusal(body: bytes) -> GatewayRefused:
    try:
        frame = json.loads(body)
        return GatewayRefused(frame["code"], frame["message"])
    except (ValueError, KeyError, TypeError):
        return GatewayRefused("handshake_refused", "The gateway refused the connection.")
