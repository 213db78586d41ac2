"""A server that sends exactly the responses that a test gives it, and a client for it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from inference.pools.vllm.http_client import HttpClient

STALL_S = 0.2  # the client's limit for a time without data
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Server:
    """Answers each request with the next response.

    If this is None, or if none is left, the server closes the connection.
    """

    def __init__(self, *responses: bytes | None) -> None:
        self.responses = list(responses)
        self.requests: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.num_open = 0  # connections
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        self.num_open += 1
        try:
            while (request := await _read_request(reader)) and self.responses:
                self.requests.append(request)
                response = self.responses.pop(0)
                if response is None:
                    break
                writer.write(response)
                await writer.drain()
        except OSError:
            pass  # the client has disconnected
        finally:
            self.num_open -= 1
            writer.close()


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    """Return a request, which must have a content-length; b"": the connection has ended."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        # From "content-length: 2", for example.
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        return head + await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        return b""


@asynccontextmanager
async def serving(
    *responses: bytes | None, context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Server, HttpClient]]:
    server = Server(*responses)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
    scheme, port = "https" if context else "http", listening.sockets[0].getsockname()[1]
    server.url = f"{scheme}://127.0.0.1:{port}/v1/completions"
    async with listening, HttpClient(max_stall_s=STALL_S) as client:
        yield server, client


async def lines_of(server: Server, client: HttpClient, body: bytes = b"{}") -> list[bytes]:
    """Return all lines of one response."""
    response = await client.post(server.url, body)
    try:
        all_lines: list[bytes] = []
        while lines := await response.read_lines():
            all_lines += lines
        response.can_reuse_connection = True  # `close` then keeps the connection for other requests
        return all_lines
    finally:
        response.close()
