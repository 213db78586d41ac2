"""The limits of the HTTP servers on headers, bodies, pipelining and time, over real sockets.

LIMITS allows 20 headers with 4,096 bytes in total. The class `App` in limited_server.py explains
the paths: /early does not read the body, the body of /large has ENDLESS bytes, and the response to
/wait is sent only after `may_answer` is set. `arrivals` gets an entry for each request.
"""

import asyncio
import gc
from dataclasses import replace
from itertools import pairwise

import pytest

from caret.foundation.web.connections import REFUSED
from caret.foundation.web.limited_http import MAX_PACED_STARTS, MAX_PIPELINED_STARTS, LimitedHttp
from tests.unit.foundation.limited_server import (
    ENDLESS,
    GET,
    HANDSHAKE,
    LIMITS,
    OK,
    SHORT_TIMEOUT_S,
    serving,
    text_frame,
)


def count_rejections(reason: str) -> float:
    return float(REFUSED.labels(reason)._value.get())


def count_parsers() -> int:
    """Return the number of connections that have an HTTP parser."""
    gc.collect()
    return sum(type(item) is LimitedHttp for item in gc.get_objects())


# --- headers


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"x" * 5_000 + b"\r\n\r\n", id="one long value"),
        pytest.param(b"GET / HTTP/1.0\r\nX: " + b"x" * 5_000 + b"\r\n\r\n", id="HTTP/1.0"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"x" * 5_000 + b": x\r\n\r\n", id="one long name"),
        pytest.param(b"GET /" + b"x" * 5_000 + b" HTTP/1.1\r\n\r\n", id="a long address"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 21 + b"\r\n", id="too many"),
        pytest.param(
            b"GET / HTTP/1.1\r\n" + (b"X: " + b"x" * 500 + b"\r\n") * 10 + b"\r\n",
            id="too long together",
        ),
        pytest.param(
            b"GET /key HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            + b"X: 1\r\n" * 19
            + b"\r\n",
            id="of a WebSocket",
        ),
    ],
)
async def test_headers_over_a_limit_are_rejected_and_the_connection_is_closed(head: bytes) -> None:
    async with serving() as server:
        client = await server.connect()

        await client.send(head)

        assert await client.read_status() == b"431"
        assert await client.read_rest() == b""
        assert server.app.num_requests == 0


async def test_headers_at_the_limits_are_accepted() -> None:
    async with serving() as server:
        client = await server.connect()

        await client.send(b"GET /small HTTP/1.1\r\n" + b"X: 1\r\n" * 20 + b"\r\n")
        status_of_many_headers = await client.read_status()
        await client.send(b"GET /small HTTP/1.1\r\nX: " + b"x" * 4_000 + b"\r\n\r\n")
        status_of_a_long_header = await client.read_status()

        assert (status_of_many_headers, status_of_a_long_header) == (b"200", b"200")


@pytest.mark.parametrize(
    "start",
    [b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n", b"GET /", b""],
    ids=["in a value", "in a name", "in the address", "blank lines after a request"],
)
async def test_endless_headers_end_the_connection(start: bytes) -> None:
    async with serving() as server:
        client = await server.connect()
        await client.send(start or GET)
        if not start:
            await client.read_response()
        filler = b"x" if start else b"\r\n"

        num_sent = await client.send_until_closed(filler * 4_096)

        assert num_sent < ENDLESS
        # The connection may be reset before the client reads the error response.
        assert (await client.read_rest())[:12] in (b"HTTP/1.1 431", b"")


async def test_the_body_before_a_pipelined_request_does_not_count_as_headers() -> None:
    body = b"x" * 300_000
    head = b"POST /small HTTP/1.1\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n"
    async with serving() as server:
        client = await server.connect()

        await client.send(head + body + GET[:10])
        first = await client.read_status()
        await client.send(GET[10:])

        assert (first, await client.read_status()) == (b"200", b"200")


async def test_an_unread_body_does_not_count_as_headers() -> None:
    body = b"x" * 300_000
    head = b"POST /early HTTP/1.1\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n"
    async with serving() as server:
        client = await server.connect()

        await client.send(head)
        first = await client.read_status()
        await client.send(body)
        await client.send(GET)

        assert (first, await client.read_status()) == (b"200", b"200")


@pytest.mark.parametrize(
    "endless",
    [b"1;" + b"x" * 4_096, b"0\r\n" + b"X: 1\r\n" * 100],
    ids=["chunk extensions", "trailers"],
)
async def test_endless_chunk_extensions_or_trailers_end_the_connection(endless: bytes) -> None:
    async with serving() as server:
        client = await server.connect()
        await client.send(b"POST /small HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")

        num_sent = await client.send_until_closed(endless)

        assert num_sent < ENDLESS


async def test_many_small_chunks_are_accepted() -> None:
    chunks = b"".join(b"1\r\nx\r\n" for _ in range(20_000)) + b"0\r\n\r\n"
    async with serving() as server:
        client = await server.connect()

        await client.send(b"POST /small HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)

        assert await client.read_status() == b"200"


async def test_a_client_with_too_many_pipelined_requests_gets_only_a_few_responses() -> None:
    async with serving() as server:
        client = await server.connect()

        await client.send(b"GET /wait HTTP/1.1\r\n\r\n" + GET * 30)
        server.app.may_answer.set()

        # At most 16 requests of a connection wait. Further ones close the connection.
        assert (await client.read_rest()).count(OK) < 20


@pytest.mark.parametrize(
    "second",
    [b"nonsense\r\n\r\n", b"POST /small HTTP/1.1\r\nContent-Length: 10\r\n\r\nx"],
    ids=["malformed", "late"],
)
@pytest.mark.parametrize("between", [b"", GET], ids=["next", "after another"])
async def test_no_error_response_begins_inside_the_response_to_an_earlier_request(
    second: bytes, between: bytes
) -> None:
    async with serving(replace(LIMITS, body_timeout_s=SHORT_TIMEOUT_S)) as server:
        client = await server.connect()

        await client.send(b"GET /large HTTP/1.1\r\n\r\n" + between + second)

        received = await client.read_rest()
        # The response may be cut off, but no error response may begin inside its body of ENDLESS
        # bytes.
        assert received[:15] in (OK, b"")
        assert b"HTTP/1.1 4" not in received.partition(b"\r\n\r\n")[2][:ENDLESS]


async def test_pipelined_requests_of_many_clients_start_a_few_at_a_time() -> None:
    num_clients = 20
    async with serving() as server:
        for _ in range(num_clients):
            await (await server.connect()).send(b"GET /wait HTTP/1.1\r\n\r\n" + GET * 2)
            await server.app.arrivals.get()
        server.app.may_answer.set()

        nums_started = [num_clients]  # after each iteration of the event loop
        while nums_started[-1] < 3 * num_clients:
            await asyncio.sleep(0)
            nums_started.append(server.app.num_requests)

        starts = [after - before for before, after in pairwise(nums_started)]
        assert max(starts) <= MAX_PIPELINED_STARTS


async def test_pipelined_requests_of_disconnected_clients_do_not_start() -> None:
    num_clients = 20
    async with serving() as server:
        clients = [await server.connect() for _ in range(num_clients)]
        for client in clients:
            await client.send(b"GET /wait HTTP/1.1\r\n\r\n" + GET)
            await server.app.arrivals.get()
        server.app.may_answer.set()
        for client in clients:
            client.writer.transport.abort()

        # A pipelined request of another client starts after all pipelined requests that wait.
        other_client = await server.connect()
        await other_client.send(GET * 2)
        await other_client.read_response()
        await other_client.read_response()

        # A few may start before the server notices the disconnects.
        assert server.app.num_requests < 2 * num_clients


async def test_a_websocket_does_not_start_before_the_earlier_response_has_ended() -> None:
    async with serving() as server:
        client = await server.connect()

        await client.send(b"GET /wait HTTP/1.1\r\n\r\n" + HANDSHAKE)

        # The server closes the connection instead of the upgrade.
        assert b" 101 " not in await client.read_rest()


# --- time


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\nX: 1\r\n", b"\r\n"])
async def test_late_headers_end_the_connection(start: bytes) -> None:
    async with serving(replace(LIMITS, header_timeout_s=SHORT_TIMEOUT_S)) as server:
        client = await server.connect()

        await client.send(start)

        received = await client.read_rest()
        # Without a request line there is no request to which the server could respond.
        assert received[:12] == (b"HTTP/1.1 408" if start[:3] == b"GET" else b"")


async def test_the_headers_of_each_request_have_their_own_time_limit() -> None:
    async with serving(replace(LIMITS, header_timeout_s=SHORT_TIMEOUT_S)) as server:
        client = await server.connect()
        await client.send(GET)
        await client.read_response()

        await client.send(GET[:10])

        assert await client.read_status() == b"408"


async def test_single_header_lines_do_not_extend_the_time_limit() -> None:
    async with serving(replace(LIMITS, header_timeout_s=SHORT_TIMEOUT_S)) as server:
        client = await server.connect()

        async def drip() -> None:
            await client.send(b"GET / HTTP/1.1\r\n")
            while True:
                await client.send(b"X: 1\r\n")
                await asyncio.sleep(SHORT_TIMEOUT_S / 5)

        dripping = asyncio.create_task(drip())
        status = await client.read_status()
        dripping.cancel()

        assert status == b"408"


async def test_an_idle_connection_ends_after_the_keep_alive_time() -> None:
    async with serving(replace(LIMITS, keep_alive_s=1)) as server:
        client = await server.connect()
        await client.send(GET)
        await client.read_response()

        assert await client.read_rest() == b""


@pytest.mark.parametrize(
    ("path", "status"), [(b"/small", b"408"), (b"/early", b"200")], ids=["read", "not read"]
)
async def test_a_late_body_ends_the_connection(path: bytes, status: bytes) -> None:
    async with serving(replace(LIMITS, body_timeout_s=SHORT_TIMEOUT_S)) as server:
        client = await server.connect()

        await client.send(b"POST " + path + b" HTTP/1.1\r\nContent-Length: 100\r\n\r\nx")

        assert await client.read_status() == status
        assert await client.read_rest() == b""


async def test_a_client_that_does_not_read_is_disconnected() -> None:
    async with serving(replace(LIMITS, send_timeout_s=SHORT_TIMEOUT_S)) as server:
        client = await server.connect(receive_buffer_bytes=4_096)

        await client.send(b"GET /large HTTP/1.1\r\n\r\n")
        await server.app.has_ended.wait()

        assert len(await client.read_rest()) < ENDLESS


async def test_a_websocket_client_that_does_not_read_is_disconnected() -> None:
    async with serving(replace(LIMITS, send_timeout_s=SHORT_TIMEOUT_S)) as server:
        client = await server.connect(receive_buffer_bytes=4_096)
        await client.send(HANDSHAKE)
        await client.read_response()

        await client.send(text_frame("large"))
        await server.app.has_ended.wait()

        assert len(await client.read_rest()) < ENDLESS


async def test_an_open_websocket_has_no_http_parser() -> None:
    async with serving() as server:
        num_before = count_parsers()
        client = await server.connect()

        await client.send(HANDSHAKE)
        await client.read_response()

        assert count_parsers() == num_before


async def test_rejections_are_counted_by_reason() -> None:
    before = count_rejections("too_many_headers")
    async with serving() as server:
        client = await server.connect()
        await client.send(b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 30)
        await client.read_rest()

    assert count_rejections("too_many_headers") == before + 1


# --- connections before their first request


async def test_a_connection_that_sends_nothing_has_no_parser() -> None:
    async with serving() as server:
        num_before = count_parsers()
        await asyncio.gather(*(server.connect() for _ in range(20)))
        client = await server.connect()

        await client.send(GET)
        await client.read_response()

        assert count_parsers() == num_before + 1  # that of `client`


@pytest.mark.parametrize("data", [GET[:10], GET * 10], ids=["incomplete headers", "many requests"])
async def test_a_request_does_not_wait_for_all_earlier_connections(data: bytes) -> None:
    async with serving() as server:
        num_before = count_parsers()
        earlier_clients = [await server.connect() for _ in range(MAX_PACED_STARTS * 5)]
        client = await server.connect()
        for earlier_client in earlier_clients:
            earlier_client.writer.write(data)
        client.writer.write(GET)

        response = await client.read_response()

        assert response.startswith(OK)
        # Some of the earlier connections have not started yet.
        assert count_parsers() < num_before + len(earlier_clients)


async def test_all_connections_with_incomplete_headers_are_served_eventually() -> None:
    async with serving() as server:
        clients = [await server.connect() for _ in range(MAX_PACED_STARTS * 3)]
        for client in clients:
            client.writer.write(GET[:10])
        await asyncio.sleep(0.01)
        for client in clients:
            client.writer.write(GET[10:])

        assert {await client.read_status() for client in clients} == {b"200"}


async def test_the_time_limit_for_headers_begins_when_the_connection_opens() -> None:
    async with serving(replace(LIMITS, header_timeout_s=SHORT_TIMEOUT_S * 2)) as server:
        client = await server.connect()
        loop = asyncio.get_running_loop()
        opened_at_s = loop.time()
        await asyncio.sleep(SHORT_TIMEOUT_S * 1.5)

        await client.send(GET[:10])

        assert await client.read_status() == b"408"
        # If the time limit began with these bytes, it would end after 3.5 times SHORT_TIMEOUT_S.
        assert loop.time() - opened_at_s < SHORT_TIMEOUT_S * 3
