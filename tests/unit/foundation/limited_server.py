"""A server with limits and its clients, over real sockets, for tests of `caret.foundation.web`."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from uvicorn.protocols.utils import ClientDisconnected

from caret.foundation.web.connections import mark_connection_authenticated
from caret.foundation.web.limited_http import ServerConfig
from caret.foundation.web.new_connection import NewConnection
from caret.foundation.web.server import LimitedWebSocket
from caret.foundation.web.server_limits import ServerLimits

# These time limits are long. A test that waits for a limit sets a short one.
LIMITS = ServerLimits(
    max_header_bytes=4_096,
    max_headers=20,
    header_timeout_s=30.0,
    body_timeout_s=30.0,
    send_timeout_s=30.0,
    keep_alive_s=30.0,
    max_requests_per_connection=100,
    max_connections=100,
    max_unauthenticated=100,
    max_unauthenticated_per_address=100,
)
SHORT_TIMEOUT_S = 0.2
TEST_TIMEOUT_S = 60.0
GET = b"GET /small HTTP/1.1\r\nHost: caret\r\n\r\n"
OK = b"HTTP/1.1 200 OK"
HANDSHAKE = (
    b"GET /key HTTP/1.1\r\nHost: caret\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
ENDLESS = 64 * 1024 * 1024  # bytes: more than the buffers of sockets hold


class App:
    """An application that echoes bodies.

    Some paths have special behaviour: /early does not read the body, /large sends a response larger
    than the socket buffers, /key authenticates the connection, /stream sends a response without a
    length, and /wait responds only after `may_answer` is set. On a WebSocket, the response to the
    message "small" is 64 KiB; the response to any other message is 64 MiB.
    """

    def __init__(self) -> None:
        self.num_requests = 0
        self.arrivals: asyncio.Queue[None] = asyncio.Queue()  # one entry for each HTTP request
        self.may_answer = asyncio.Event()
        self.has_ended = asyncio.Event()  # a response was sent, or a WebSocket has ended

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._respond_to_messages(scope, receive, send)
            return
        self.num_requests += 1
        self.arrivals.put_nowait(None)
        if scope["path"] == "/key":
            mark_connection_authenticated(scope)
        if scope["path"] == "/wait":
            await self.may_answer.wait()
        body = b"x" * ENDLESS if scope["path"] == "/large" else b""
        if scope["path"] not in ("/large", "/early"):
            body = await _read_body(receive)
        length = str(len(body)).encode()
        headers = [] if scope["path"] == "/stream" else [(b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for start in range(0, len(body) or 1, 65_536):  # an empty body is sent as one part
            part = body[start : start + 65_536]
            has_more = start + 65_536 < len(body)
            await send({"type": "http.response.body", "body": part, "more_body": has_more})
        self.has_ended.set()

    async def _respond_to_messages(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()  # the event `websocket.connect`
        if scope["path"] == "/key":
            mark_connection_authenticated(scope)
        await send({"type": "websocket.accept"})
        try:
            while (message := await receive())["type"] == "websocket.receive":
                for _ in range(1 if message["text"] == "small" else 1_024):
                    await send({"type": "websocket.send", "text": "x" * 65_536})
        except ClientDisconnected:
            pass
        finally:
            self.has_ended.set()


async def _read_body(receive: Any) -> bytes:
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            return bytes(body)


class Client:
    """A connection to the server, on which a test can send arbitrary bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()
        await asyncio.sleep(0)  # lets the server run: it uses the same event loop

    async def send_until_closed(self, data: bytes) -> int:
        """Return the number of bytes sent: ENDLESS if the server accepts everything."""
        num_bytes = 0
        with suppress(OSError):
            while num_bytes < ENDLESS:
                await self.send(data)
                num_bytes += len(data)
        return num_bytes

    async def read_response(self) -> bytes:
        """Read one response, and return its status line and headers.

        A body without a length is not read.
        """
        head: bytes = await self.reader.readuntil(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length: "):
                await self.reader.readexactly(int(line.split()[1]))
        return head

    async def read_status(self) -> bytes:
        return bytes((await self.read_response()).split()[1])

    async def read_rest(self) -> bytes:
        """Return everything up to the end of the connection; nothing if the server resets it."""
        try:
            return await self.reader.read()
        except OSError:
            return b""


class Server:
    """The running server, with the clients that tests have connected to it."""

    def __init__(self, app: App, port: int) -> None:
        self.app, self.port = app, port
        self._clients: list[Client] = []

    async def connect(self, source: str = "127.0.0.1", receive_buffer_bytes: int = 0) -> Client:
        """Connect from the address `source`; 0 bytes stand for the system's buffer size."""
        sock = socket.socket()
        if receive_buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        sock.bind((source, 0))
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        # The client stops reading from the socket when it has about `limit` unread bytes.
        client = Client(*await asyncio.open_connection(sock=sock, limit=1024))
        self._clients.append(client)
        return client

    def close_clients(self) -> None:
        for client in self._clients:
            client.writer.close()


@asynccontextmanager
async def serving(
    limits: ServerLimits = LIMITS, proxies: tuple[str, ...] = ()
) -> AsyncIterator[Server]:
    """Run a server until the end of the block, which may take up to TEST_TIMEOUT_S."""
    app = App()
    config = ServerConfig(
        app,
        limits=limits,
        port=0,
        http=NewConnection,
        ws=LimitedWebSocket,
        lifespan="off",
        log_config=None,
        timeout_keep_alive=int(limits.keep_alive_s),
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    port: int = server.servers[0].sockets[0].getsockname()[1]
    running_server = Server(app, port)
    try:
        async with asyncio.timeout(TEST_TIMEOUT_S):
            yield running_server
    finally:
        running_server.close_clients()
        app.may_answer.set()
        await server.shutdown()


def text_frame(text: str) -> bytes:
    """Return a WebSocket frame with a whole text message of less than 126 bytes.

    As in every frame of a client, the bit 0x80 of the length says that the text is masked. The
    mask, four zero bytes, does not change the text.
    """
    return bytes((0x81, 0x80 | len(text), 0, 0, 0, 0)) + text.encode()
