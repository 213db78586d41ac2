"""The HTTP client for engines, against a server that sends exactly the given bytes.

`serving` starts the server with its responses, in order. For None, and after the last response, the
server closes the connection.
"""

import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from inference.pools.vllm import http_client, http_connection
from inference.pools.vllm.http_client import MAX_IDLE_CONNECTIONS, HttpClient
from inference.pools.vllm.http_connection import (
    MAX_HEAD_BYTES,
    MAX_HELD_BYTES,
    MAX_LINE_BYTES,
    ConnectionFailed,
    ConnectionLost,
    MalformedResponse,
)
from tests.fakes.http_server import (
    END,
    HEAD,
    STALL_S,
    Server,
    chunk,
    lines_of,
    serving,
)
from tests.fakes.polling import wait_until

COMPLETE = HEAD + chunk(b"data: a\n\ndata: b\n\n") + END


async def test_a_request_is_sent_completely_and_its_data_lines_are_returned() -> None:
    async with serving(COMPLETE) as (server, client):
        lines = await lines_of(server, client, b'{"prompt":[1]}')

    assert lines == [b"a", b"b"]
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    host = server.url.split("/")[2].encode()
    assert head.split(b"\r\n") == [
        b"POST /v1/completions HTTP/1.1",
        b"Host: " + host,
        b"Content-Type: application/json",
        b"Content-Length: 14",
    ]
    assert body == b'{"prompt":[1]}'


@pytest.mark.parametrize("num_bytes", [1, 2, 7, 61])
async def test_lines_are_complete_with_chunks_of_any_size(num_bytes: int) -> None:
    data = b": ping\r\ndata: one\r\n\r\nevent: x\ndata: two\n\ndata: three\n"
    chunks = [chunk(data[at : at + num_bytes]) for at in range(0, len(data), num_bytes)]
    async with serving(HEAD + b"".join(chunks) + END) as (server, client):
        lines = await lines_of(server, client)

    assert lines == [b"one", b"two", b"three"]


async def test_a_body_with_a_content_length_is_read() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\ndata: a\n") as (
        server,
        client,
    ):
        assert await lines_of(server, client) == [b"a"]


async def test_an_informational_response_is_skipped() -> None:
    async with serving(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + COMPLETE) as (
        server,
        client,
    ):
        assert await lines_of(server, client) == [b"a", b"b"]


async def test_connections_are_reused() -> None:
    async with serving(*[COMPLETE] * 6) as (server, client):
        await asyncio.gather(lines_of(server, client), lines_of(server, client))
        for _ in range(4):
            await lines_of(server, client)

        assert len(server.writers) == 2


async def test_lines_in_quick_succession_are_returned_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_connection, "PACE_S", STALL_S / 10)
    async with serving(HEAD + chunk(b"data: a\n")) as (server, client):
        response = await client.post(server.url, b"{}")
        first_lines = await response.read_lines()
        for line in (b"data: b\n", b"data: c\n"):
            server.writers[0].write(chunk(line))
            await asyncio.sleep(0.001)

        later_lines = await response.read_lines()
        response.close()

    assert (first_lines, later_lines) == ([b"a"], [b"b", b"c"])


async def test_the_end_of_a_response_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "PACE_S", 3_600.0)  # longer than the test
    async with serving(HEAD + chunk(b"data: a\n")) as (server, client):
        response = await client.post(server.url, b"{}")
        await response.read_lines()
        server.writers[0].write(chunk(b"data: b\n") + END)

        async with asyncio.timeout(STALL_S / 2):
            assert await response.read_lines() == [b"b"]
        response.close()


async def test_a_lost_connection_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "PACE_S", 3_600.0)  # longer than the test
    async with serving(HEAD + chunk(b"data: a\n")) as (server, client):
        response = await client.post(server.url, b"{}")
        await response.read_lines()
        server.writers[0].transport.abort()

        async with asyncio.timeout(STALL_S / 2):
            with pytest.raises(ConnectionLost):
                await response.read_lines()
        response.close()


async def test_a_late_end_of_the_response_does_not_block_the_reader() -> None:
    """A reader that needs no more lines need not wait. The connection is reused after the end."""
    async with serving(COMPLETE.removesuffix(END), COMPLETE) as (server, client):
        response = await client.post(server.url, b"{}")
        await response.read_lines()
        response.can_reuse_connection = True
        response.close()
        server.writers[0].write(END)
        await wait_until(lambda: bool(client._idle_by_url[server.url]))

        await lines_of(server, client)

        assert len(server.writers) == 1


async def test_a_response_without_an_end_closes_its_connection() -> None:
    async with serving(COMPLETE.removesuffix(END)) as (server, client):
        response = await client.post(server.url, b"{}")
        await response.read_lines()
        response.can_reuse_connection = True
        response.close()

        await wait_until(lambda: server.num_open == 0)


@pytest.mark.parametrize(
    "response",
    [
        COMPLETE.replace(b"\r\n", b"\r\nconnection: close\r\n", 1),
        COMPLETE.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"transfer", b"x-transfer"),
    ],
    ids=["connection: close", "HTTP/1.0"],
)
async def test_a_connection_that_the_server_does_not_keep_is_replaced(response: bytes) -> None:
    async with serving(response, COMPLETE) as (server, client):
        first = await client.post(server.url, b"{}")
        await first.read_lines()
        first.can_reuse_connection = True
        first.close()

        assert await lines_of(server, client) == [b"a", b"b"]
        assert len(server.writers) == 2


async def test_a_reused_connection_that_the_server_closed_is_retried_once() -> None:
    async with serving(COMPLETE, None, COMPLETE) as (server, client):
        await lines_of(server, client)

        assert await lines_of(server, client) == [b"a", b"b"]


async def test_a_new_connection_that_the_server_closes_is_an_error() -> None:
    async with serving(COMPLETE, None, None, COMPLETE) as (server, client):
        await lines_of(server, client)

        with pytest.raises(ConnectionLost):
            await lines_of(server, client)
        assert len(server.requests) == 3  # the second one was sent twice


async def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "IDLE_TIMEOUT_S", 0.0)
    async with serving(COMPLETE) as (server, client):
        await lines_of(server, client)

        await wait_until(lambda: server.num_open == 0)


async def test_the_number_of_idle_connections_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_IDLE_CONNECTIONS", 2)
    async with serving(*[COMPLETE] * 3) as (server, client):
        await asyncio.gather(*(lines_of(server, client) for _ in range(3)))

        await wait_until(lambda: server.num_open == 2)
    assert MAX_IDLE_CONNECTIONS > 2  # without the lower limit, all connections would be kept


GARBAGE: dict[str, bytes] = {
    "not HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "an endless head": b"HTTP/1.1 200 OK\r\nx: " + b"x" * (2 * MAX_HEAD_BYTES),
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n"
    b"connection: upgrade\r\n\r\n",
    "a broken chunk": HEAD + b"zz\r\n",
    "an endless line": HEAD + chunk(b"data: " + b"x" * (MAX_LINE_BYTES + 1)),
    "a long line": HEAD + chunk(b"data: " + b"x" * MAX_LINE_BYTES + b"\n") + END,
}


@pytest.mark.parametrize("name", GARBAGE)
async def test_a_malformed_response_closes_the_connection(name: str) -> None:
    async with serving(GARBAGE[name]) as (server, client):
        with pytest.raises(MalformedResponse):
            await lines_of(server, client)

        await wait_until(lambda: server.num_open == 0)


@pytest.mark.parametrize("response", [b"", HEAD, HEAD + chunk(b"data: a\n")])
async def test_a_silent_server_times_out(response: bytes) -> None:
    async with serving(response) as (server, client):
        with pytest.raises(ConnectionLost):
            await lines_of(server, client)

        await wait_until(lambda: server.num_open == 0)


async def test_a_second_response_to_one_request_is_dropped() -> None:
    async with serving(COMPLETE + HEAD + chunk(b"data: x\n") + END, COMPLETE) as (server, client):
        assert await lines_of(server, client) == [b"a", b"b"]
        assert await lines_of(server, client) == [b"a", b"b"]

        assert len(server.writers) == 2


async def test_unexpected_data_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    # A short timeout would close the idle connection anyway.
    monkeypatch.setattr(http_client, "IDLE_TIMEOUT_S", 60.0)
    async with serving(COMPLETE, COMPLETE) as (server, client):
        await lines_of(server, client)
        server.writers[0].write(COMPLETE)
        await wait_until(lambda: server.num_open == 0)

        assert await lines_of(server, client) == [b"a", b"b"]


async def test_an_unread_response_is_not_buffered_without_limit() -> None:
    line = b"data: " + b"x" * 1_000 + b"\n"
    num_lines = 20 * MAX_HELD_BYTES // len(line)
    async with serving(HEAD + chunk(line) * num_lines + END) as (server, client):
        response = await client.post(server.url, b"{}")
        connection = response._connection
        await wait_until(lambda: connection._is_paused)
        num_buffered_bytes = sum(map(len, connection._lines))

        num_lines_read = 0
        while lines := await response.read_lines():
            num_lines_read += len(lines)
        response.close()

    assert num_buffered_bytes < 4 * MAX_HELD_BYTES
    assert num_lines_read == num_lines


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a certificate for 127.0.0.1 with its key in one file."""
    file = tmp_path_factory.mktemp("tls") / "engine.pem"
    command = (
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-days", "2", "-subj", "/CN=engine", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", str(file.with_suffix(".key")), "-out", str(file)),
    )
    subprocess.run(command, check=True, capture_output=True)
    file.write_text(file.read_text() + file.with_suffix(".key").read_text())
    return file


async def test_https_urls_are_requested_over_tls(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    trusting_context = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr(http_client, "_make_ssl_context", lambda: trusting_context)
    async with serving(COMPLETE, context=context) as (server, client):
        assert await lines_of(server, client) == [b"a", b"b"]


async def test_a_server_with_an_untrusted_certificate_gets_no_request(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with serving(COMPLETE, context=context) as (server, client):
        with pytest.raises(ssl.SSLCertVerificationError):
            await lines_of(server, client)

        assert server.requests == []


async def _expect_disconnect(
    leave: Callable[[Server, HttpClient], Awaitable[None]], response: bytes
) -> None:
    """Check that the connection is closed at once when the caller leaves during a request."""
    async with serving(response) as (server, client):
        await leave(server, client)

        async with asyncio.timeout(STALL_S / 2):
            await wait_until(lambda: bool(server.writers) and server.num_open == 0)
        assert not client._idle_by_url[server.url]


async def test_leaving_during_the_response_closes_the_connection() -> None:
    async def leave(server: Server, client: HttpClient) -> None:
        response = await client.post(server.url, b"{}")
        await response.read_lines()
        response.close()

    await _expect_disconnect(leave, HEAD + chunk(b"data: a\n"))


async def test_cancellation_before_the_response_closes_the_connection() -> None:
    async def leave(server: Server, client: HttpClient) -> None:
        request = asyncio.create_task(client.post(server.url, b"{}"))
        await wait_until(lambda: bool(server.requests))
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    await _expect_disconnect(leave, b"")


async def test_closing_the_client_ends_running_requests() -> None:
    async with serving(HEAD) as (server, client):
        response = await client.post(server.url, b"{}")

        await client.__aexit__(None, None, None)

        with pytest.raises(ConnectionFailed):
            await response.read_lines()
        await wait_until(lambda: server.num_open == 0)
