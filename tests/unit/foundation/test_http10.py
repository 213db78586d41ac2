"""Responses to clients of HTTP/1.0 and HTTP/1.1, in particular those without a length."""

import pytest

from tests.unit.foundation.limited_server import GET, OK, serving


@pytest.mark.parametrize("path", [b"/stream", b"/small"], ids=["without a length", "with a length"])
async def test_an_http_1_0_client_gets_no_chunks_and_its_connection_is_closed(
    path: bytes,
) -> None:
    async with serving() as server:
        client = await server.connect()

        await client.send(b"POST " + path + b" HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello")
        head, _, body = (await client.read_rest()).partition(b"\r\n\r\n")

        assert head.startswith(OK)
        assert b"chunked" not in head
        assert body == b"hello"


async def test_an_http_1_1_client_gets_chunks_and_keeps_its_connection() -> None:
    async with serving() as server:
        client = await server.connect()

        await client.send(b"POST /stream HTTP/1.1\r\nHost: caret\r\nContent-Length: 5\r\n\r\nhello")
        head = await client.read_response()
        body = await client.reader.readuntil(b"0\r\n\r\n")
        await client.send(GET)

        assert b"transfer-encoding: chunked" in head
        assert body == b"5\r\nhello\r\n0\r\n\r\n"
        assert await client.read_status() == b"200"
