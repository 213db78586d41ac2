"""The only WebSocket to the gateway. It reconnects whenever it ends, and never blocks the editor.

Without a connection, or if too many frames wait to be sent, a new frame is not sent, and a request
fails at once. Nothing confirms that a sent frame has arrived.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from caret_ls import frames
from caret_ls.backoff import Backoff
from caret_ls.clock import LoopClock
from caret_ls.frames import Frame

_OPEN_TIMEOUT_S: Final = 10.0
_STABLE_AFTER_S: Final = 5.0  # a connection that lived this long resets the backoff
_SIGNED_OUT_S: Final = 300.0  # between attempts with a rejected API key
_CLOSE_KEY_ENDED: Final = 4401  # close code of the gateway if the API key is no longer valid
_MAX_CLOCK_JUMP_S: Final = 20.0  # a larger jump of the wall clock means that the machine has slept
_TICK_S: Final = 5.0  # between checks whether the machine has slept
MAX_BACKLOG: Final = 64  # frames waiting to be sent


class ConnectionState(StrEnum):
    CONNECTED = "connected"
    OFFLINE = "offline"
    UNAUTHENTICATED = "signed_out"  # there is no API key, or the gateway rejects it


class RequestEnded(Exception):
    """A request ended without a completion. `code` is the gateway's error code, or `offline`."""

    def __init__(self, code: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.retry_after_s = retry_after_s  # None: the gateway named no time


class ConnectionListener(Protocol):
    def on_state(self, state: ConnectionState) -> None:
        """Handle the state after a connection began, ended or failed; it may be the same again."""

    def on_frame(self, frame: Frame) -> None:
        """Handle a frame that does not belong to a completion."""


@dataclass(frozen=True, slots=True)
class Address:
    url: str  # http(s)://host:port of the gateway
    key: str = field(repr=False)  # the API key
    editor: str = ""  # name and version that the editor gives itself; sent in a header


class GatewayConnection:
    def __init__(
        self,
        listener: ConnectionListener,
        backoff: Backoff,
        clock: LoopClock,
        *,
        tick_s: float = _TICK_S,
    ) -> None:
        self._listener = listener
        self._backoff = backoff
        self._clock = clock
        self._tick_s = tick_s
        self._address: Address | None = None  # None: there is no API key
        self._is_key_rejected = False
        # Set if the address has changed, or the machine has slept.
        self._should_reconnect = asyncio.Event()
        self._outgoing: asyncio.Queue[Frame] | None = None  # None: not connected
        # Responses of requests in flight, by ID.
        self._responses: dict[str, asyncio.Queue[Frame | RequestEnded]] = {}

    @property
    def address(self) -> Address | None:
        return self._address

    def set_address(self, address: Address | None) -> None:
        """Connect to another address; None: there is no API key.

        The same address is tried again if the gateway rejected its API key, because the key may
        have become valid.
        """
        if address != self._address or self._is_key_rejected:
            self._address = address
            self._should_reconnect.set()

    def send(self, frame: Frame) -> bool:
        """Send a frame. Return False if there is no connection, or too many frames wait."""
        if self._outgoing is None or self._outgoing.full():
            return False
        self._outgoing.put_nowait(frame)
        return True

    @asynccontextmanager
    async def request(self, frame: Frame) -> AsyncIterator[AsyncIterator[Frame]]:
        """Request a completion, and yield an iterator of its frames up to `done`.

        Leaving the block before the request has ended cancels it at the gateway. Raises
        RequestEnded at the start of the block, or while the frames are read.
        """
        responses: asyncio.Queue[Frame | RequestEnded] = asyncio.Queue()
        self._responses[frame["id"]] = responses
        is_over = False

        async def read_frames() -> AsyncIterator[Frame]:
            nonlocal is_over
            while not is_over:
                response = await responses.get()
                is_over = isinstance(response, RequestEnded) or response["type"] != "delta"
                if isinstance(response, RequestEnded):
                    raise response
                yield response

        try:
            if not self.send(frame):
                is_over = True
                raise RequestEnded("offline")
            yield read_frames()
        finally:
            del self._responses[frame["id"]]
            if not is_over:
                self.send(frames.build_cancel(frame["id"]))

    async def run(self) -> None:
        """Connect and reconnect forever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_sleep())
            while True:
                self._should_reconnect.clear()
                if self._address is None:
                    self._listener.on_state(ConnectionState.UNAUTHENTICATED)
                    await self._should_reconnect.wait()
                    continue
                wait_s = await self._run_once(self._address)
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._should_reconnect.wait()

    async def _run_once(self, address: Address) -> float:
        """Run one connection to its end; return the seconds to wait before the next."""
        began_s = self._clock.monotonic_s()
        try:
            async with _open(address) as socket:
                await self._serve(socket)
            state = ConnectionState.OFFLINE
            if socket.close_code == _CLOSE_KEY_ENDED:
                state = ConnectionState.UNAUTHENTICATED
        except InvalidStatus as error:
            is_rejected = error.response.status_code in (401, 403)
            state = ConnectionState.UNAUTHENTICATED if is_rejected else ConnectionState.OFFLINE
        # ImportError: the environment may name a kind of proxy that needs a missing package.
        except (OSError, WebSocketException, ValueError, ImportError):
            state = ConnectionState.OFFLINE
        self._is_key_rejected = state is ConnectionState.UNAUTHENTICATED
        self._listener.on_state(state)
        if self._clock.monotonic_s() - began_s > _STABLE_AFTER_S:
            self._backoff.reset()
        return (
            _SIGNED_OUT_S
            if state is ConnectionState.UNAUTHENTICATED
            else self._backoff.next_delay_s()
        )

    async def _serve(self, socket: ClientConnection) -> None:
        """Serve the connection until it ends, or until another connection must replace it."""
        self._outgoing = asyncio.Queue(MAX_BACKLOG)
        self._listener.on_state(ConnectionState.CONNECTED)
        tasks = [
            asyncio.create_task(task)
            for task in (
                self._read_frames(socket),
                self._write_frames(socket, self._outgoing),
                self._wait_for_reconnect(),
            )
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._outgoing = None
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for responses in self._responses.values():
                responses.put_nowait(RequestEnded("offline"))

    async def _read_frames(self, socket: ClientConnection) -> None:
        async for text in socket:
            frame = frames.decode_frame(text if isinstance(text, str) else "")
            responses = self._responses.get(frame.get("id", ""))
            if frame.get("type") == "error" and responses is not None:
                code, retry_after_s = str(frame.get("code")), frame.get("retry_after_s")
                responses.put_nowait(RequestEnded(code, retry_after_s=retry_after_s))
            elif frame.get("type") in ("delta", "done"):
                if responses is not None:
                    responses.put_nowait(frame)
            else:
                self._listener.on_frame(frame)

    async def _write_frames(self, socket: ClientConnection, outgoing: asyncio.Queue[Frame]) -> None:
        while True:
            await socket.send(frames.encode_frame(await outgoing.get()))

    async def _wait_for_reconnect(self) -> None:
        await self._should_reconnect.wait()

    async def _watch_sleep(self) -> None:
        """Reconnect after the machine has slept.

        During sleep the wall clock advances, but the monotonic clock stands still. The connection
        is dead afterwards. Without this check, only a timeout would show that.
        """
        clock_difference_s = self._clock.wall_s() - self._clock.monotonic_s()
        while True:
            await asyncio.sleep(self._tick_s)
            new_difference_s = self._clock.wall_s() - self._clock.monotonic_s()
            if abs(new_difference_s - clock_difference_s) > _MAX_CLOCK_JUMP_S:
                self._backoff.reset()
                self._should_reconnect.set()
            clock_difference_s = new_difference_s


def _open(address: Address) -> connect:
    # `http://` becomes `ws://`, and `https://` becomes `wss://`.
    url = address.url.replace("http", "ws", 1).rstrip("/") + "/v1/stream"
    headers = {"Authorization": f"Bearer {address.key}"}
    if address.editor:
        headers["X-Caret-Editor"] = address.editor
    options: dict[str, Any] = {}
    if url.startswith("wss:"):
        options["ssl"] = ssl.create_default_context()
    return connect(
        url,
        subprotocols=[Subprotocol(frames.SUBPROTOCOL)],
        additional_headers=headers,
        compression=None,
        max_size=None,
        open_timeout=_OPEN_TIMEOUT_S,
        close_timeout=1,  # seconds
        **options,
    )
