"""A streamed chat over HTTP, with servers that respond, fail or disconnect."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager

import pytest

from caret_ls.chat_stream import ChatEnd, ChatFailed, stream_chat
from caret_ls.gateway_connection import Address
from tests.fakes.polling import wait_until

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
END = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]


def text_event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"


@asynccontextmanager
async def run_server(serve: Serve) -> AsyncIterator[Address]:
    """Run a server, and yield its address."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Address(f"http://127.0.0.1:{port}", "cpk_test_x", "neovim")


@asynccontextmanager
async def server_that_sends(*parts: bytes) -> AsyncIterator[Address]:
    """Run a server that responds to each request with these bytes and disconnects."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.writelines(parts)
        writer.close()

    async with run_server(serve) as address:
        yield address


async def read_parts(address: Address) -> list[str | ChatEnd]:
    return [part async for part in stream_chat(address, {"messages": []})]


async def test_texts_are_followed_by_the_end() -> None:
    async with server_that_sends(HEAD, text_event("Grüße, "), text_event("😀"), END) as address:
        assert await read_parts(address) == ["Grüße, ", "😀", ChatEnd("stop")]


async def test_carets_own_finish_reason_is_preferred() -> None:
    end = b'data: {"choices":[{"delta":{},"finish_reason":"content_filter"}],'
    async with server_that_sends(HEAD, end + b'"caret_finish_reason":"shed"}\n\n') as address:
        assert await read_parts(address) == [ChatEnd("shed")]


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        (
            (b"HTTP/1.1 403 No\r\n\r\n", b'{"error":{"code":"feature_disabled"}}'),
            "feature_disabled",
        ),
        ((b"HTTP/1.1 502 No\r\ncontent-length: 13\r\n\r\n<html></html>",), "offline"),
        (
            (HEAD, text_event("a"), b'data: {"error":{"code":"revoked_api_key"}}\n\n'),
            "revoked_api_key",
        ),
        ((HEAD, text_event("a")), "offline"),
        ((HEAD, b"data: nonsense\n\ndata: []\n\n"), "offline"),
        ((HEAD, b'data: {"choices":null}\n\ndata: {"choices":[{"delta":null}, 1]}\n\n'), "offline"),
        ((), "offline"),
    ],
)
async def test_a_failure_has_the_gateways_code_or_offline(
    parts: tuple[bytes, ...], code: str
) -> None:
    async with server_that_sends(*parts) as address:
        with pytest.raises(ChatFailed) as exc_info:
            await read_parts(address)

    assert exc_info.value.code == code


async def test_a_gateway_that_cannot_be_reached_is_offline() -> None:
    async with server_that_sends() as address:
        pass  # the server stops at the end of this block

    with pytest.raises(ChatFailed) as exc_info:
        await read_parts(address)

    assert exc_info.value.code == "offline"


async def test_an_answer_that_a_proxy_sends_all_at_once_arrives_whole() -> None:
    num_events = 4_000  # more bytes than one read returns

    async with server_that_sends(HEAD + text_event("a") * num_events + END) as address:
        assert await read_parts(address) == [*("a" * num_events), ChatEnd("stop")]


async def test_leaving_the_stream_closes_the_connection() -> None:
    is_closed = False

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal is_closed
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + text_event("a"))
        while await reader.read(1_000):
            pass  # until the client closes the connection
        is_closed = True
        writer.close()

    async with run_server(serve) as address:
        async with aclosing(stream_chat(address, {"messages": []})) as parts:
            await anext(parts)
        await wait_until(lambda: is_closed)
