"""The only WebSocket to the gateway: reconnects whenever it ends, and never blocks the editor.

Without a connection, requests fail at once. Other frames are rejected without a connection or if
the backlog is full. Nothing confirms that an accepted frame has arrived.
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
_WELL_AFTER_S: Final = 5.0  # a connection that lived this long resets the backoff
_SIGNED_OUT_S: Final = 300.0  # between attempts with a rejected key
_CLOSE_KEY_ENDED: Final = 4401
_CLOCKS_APART_S: Final = 20.0
_TICK_S: Final = 5.0
MAX_BACKLOG: Final = 64  # frames waiting to be sent


class ConnectionState(StrEnum):
    CONNECTED = "connected"
    OFFLINE = "offline"
    UNAUTHENTICATED = "signed_out"


class RequestEnded(Exception):
    """A request ended without a completion; `code` is the gateway's, or `offline`."""

    def __init__(self, code: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.retry_after_s = retry_after_s  # None: not given


class ConnectionListener(Protocol):
    def on_state(self, state: ConnectionState) -> None: ...

    def on_frame(self, frame: Frame) -> None:
        """Handle a frame that does not belong to a completion."""


@dataclass(frozen=True, slots=True)
class Address:
    url: str  # http(s)://host:port of the gateway
    key: str = field(repr=False)
    editor: str = ""  # the editor's name for itself; sent in a header


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
        self._tick_s = tick_s  # interval of the check whether the machine has slept
        self._address: Address | None = None
        self._is_refused = False
        self._should_reconnect = asyncio.Event()  # another address, or awake again: reconnect
        self._outgoing: asyncio.Queue[Frame] | None = None
        self._answers: dict[str, asyncio.Queue[Frame | RequestEnded]] = {}

    def set_address(self, address: Address | None) -> None:
        """Connect to another address; None if there is no key.

        A rejected key is tried again, because it may have become valid.
        """
        if address != self._address or self._is_refused:
            self._address = address
            self._should_reconnect.set()

    def send(self, frame: Frame) -> bool:
        """Send a frame; return False if there is no connection, or no room in the backlog."""
        if self._outgoing is None or self._outgoing.full():
            return False
        self._outgoing.put_nowait(frame)
        return True

    @asynccontextmanager
    async def request(self, frame: Frame) -> AsyncIterator[AsyncIterator[Frame]]:
        """Request a completion; yield its frames up to `done`.

        Leaving the block earlier cancels the request at the gateway. Raises RequestEnded, here or
        while the frames are read.
        """
        answers: asyncio.Queue[Frame | RequestEnded] = asyncio.Queue()
        self._answers[frame["id"]] = answers
        is_over = False

        async def read() -> AsyncIterator[Frame]:
            nonlocal is_over
            while not is_over:
                answer = await answers.get()
                is_over = isinstance(answer, RequestEnded) or answer["type"] != "delta"
                if isinstance(answer, RequestEnded):
                    raise answer
                yield answer

        try:
            if not self.send(frame):
                is_over = True
                raise RequestEnded("offline")
            yield read()
        finally:
            del self._answers[frame["id"]]
            if not is_over:
                self.send(frames.cancel(frame["id"]))

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
        # The environment may name a kind of proxy that needs a missing package.
        except (OSError, WebSocketException, ValueError, ImportError):
            state = ConnectionState.OFFLINE
        self._is_refused = state is ConnectionState.UNAUTHENTICATED
        self._listener.on_state(state)
        if self._clock.monotonic_s() - began_s > _WELL_AFTER_S:
            self._backoff.reset()
        return (
            _SIGNED_OUT_S
            if state is ConnectionState.UNAUTHENTICATED
            else self._backoff.next_delay_s()
        )

    async def _serve(self, socket: ClientConnection) -> None:
        """Serve the connection until it ends, or until the address changes."""
        self._outgoing = asyncio.Queue(MAX_BACKLOG)
        self._listener.on_state(ConnectionState.CONNECTED)
        duties = [
            asyncio.create_task(duty)
            for duty in (
                self._read(socket),
                self._write(socket, self._outgoing),
                self._end_requests(),
            )
        ]
        try:
            await asyncio.wait(duties, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._outgoing = None
            for duty in duties:
                duty.cancel()
            await asyncio.gather(*duties, return_exceptions=True)
            for answers in self._answers.values():
                answers.put_nowait(RequestEnded("offline"))

    async def _read(self, socket: ClientConnection) -> None:
        async for text in socket:
            frame = frames.decode(text if isinstance(text, str) else "")
            answers = self._answers.get(frame.get("id", ""))
            if frame.get("type") == "error" and answers is not None:
                code, retry_after_s = str(frame.get("code")), frame.get("retry_after_s")
                answers.put_nowait(RequestEnded(code, retry_after_s=retry_after_s))
            elif frame.get("type") in ("delta", "done"):
                if answers is not None:
                    answers.put_nowait(frame)
            else:
                self._listener.on_frame(frame)

    async def _write(self, socket: ClientConnection, outgoing: asyncio.Queue[Frame]) -> None:
        while True:
            await socket.send(frames.encode(await outgoing.get()))

    async def _end_requests(self) -> None:
        await self._should_reconnect.wait()

    async def _watch_sleep(self) -> None:
        """Reconnect after the machine has slept.

        During sleep the wall clock advances, but the monotonic clock stands still. The connection
        is dead then, and would otherwise be noticed only by a timeout.
        """
        apart_s = self._clock.wall_s() - self._clock.monotonic_s()
        while True:
            await asyncio.sleep(self._tick_s)
            now_apart_s = self._clock.wall_s() - self._clock.monotonic_s()
            if abs(now_apart_s - apart_s) > _CLOCKS_APART_S:
                self._backoff.reset()
                self._should_reconnect.set()
            apart_s = now_apart_s


def _open(address: Address) -> connect:
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
        close_timeout=1,
        **options,
    )
