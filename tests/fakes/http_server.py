"""A server that sends exactly the responses that a test gives it, and a client for it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from inference.pools.vllm.http_client import HttpClient

STALL_S = 0.2
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Server:
    """Reads a request, writes the next response, and so on; closes at None."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.num_open = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        self.num_open += 1
        try:
            while (request := await _request(reader)) and self.answers:
                self.requests.append(request)
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except OSError:
            pass  # the client has disconnected
        finally:
            self.num_open -= 1
            writer.close()


async def _request(reader: asyncio.StreamReader) -> bytes:
    """Read a request; return no bytes at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        return head + await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        return b""


@asynccontextmanager
async def serving(
    *answers: bytes | None, context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Server, HttpClient]]:
    server = Server(*answers)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
    scheme, port = "https" if context else "http", listening.sockets[0].getsockname()[1]
    server.url = f"{scheme}://127.0.0.1:{port}/v1/completions"
    async with listening, HttpClient(max_stall_s=STALL_S) as client:
        yield server, client


async def lines_of(server: Server, client: HttpClient, body: bytes = b"{}") -> list[bytes]:
    """Return all lines of one response."""
    answer = await client.post(server.url, body)
    try:
        found: list[bytes] = []
        while lines := await answer.read_lines():
            found += lines
        answer.is_enough = True
        return found
    finally:
        answer.close()
