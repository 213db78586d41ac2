"""The connection limits of the HTTP servers, over real sockets.

The class `App` in limited_server.py explains the paths: /key authenticates its connection, and the
response to /wait is sent only after `may_answer` is set. `arrivals` gets an entry for each request.
"""

from dataclasses import replace

import pytest

from caret.foundation.web.server_limits import ServerLimits
from tests.unit.foundation.limited_server import GET, HANDSHAKE, LIMITS, serving, text_frame


def limit_per_address(num: int) -> ServerLimits:
    """Return limits of at most `num` unauthenticated connections for each address."""
    return replace(LIMITS, max_unauthenticated_per_address=num)


async def test_a_new_connection_replaces_the_one_that_waits_longest() -> None:
    async with serving(limit_per_address(2)) as server:
        idle = await server.connect()
        silent = await server.connect()
        await idle.send(GET)
        await idle.read_response()  # since then, the connection waits for its next request

        first_new = await server.connect()
        assert await silent.read_rest() == b""

        await server.connect()
        assert await idle.read_rest() == b""

        await server.connect()
        assert await first_new.read_rest() == b""


async def test_each_address_has_its_own_limit() -> None:
    async with serving(limit_per_address(2)) as server:
        neighbour = await server.connect("127.0.0.2")
        for _ in range(5):
            await server.connect("127.0.0.3")

        await neighbour.send(GET)

        assert await neighbour.read_status() == b"200"


async def test_a_connection_is_rejected_if_all_others_are_in_use() -> None:
    async with serving(limit_per_address(2)) as server:
        busy = [await server.connect() for _ in range(2)]
        for client in busy:
            await client.send(b"GET /wait HTTP/1.1\r\n\r\n")
            await server.app.arrivals.get()

        new = await server.connect()
        received = await new.read_rest()
        server.app.may_answer.set()

        assert received == b""
        assert [await client.read_status() for client in busy] == [b"200", b"200"]


@pytest.mark.parametrize(
    "request_", [b"GET /key HTTP/1.1\r\n\r\n", HANDSHAKE], ids=["HTTP", "WebSocket"]
)
async def test_new_connections_do_not_replace_an_authenticated_one(request_: bytes) -> None:
    async with serving(limit_per_address(2)) as server:
        authenticated = await server.connect()
        await authenticated.send(request_)
        await authenticated.read_response()

        for _ in range(5):
            await server.connect()
        await authenticated.send(text_frame("small") if request_ is HANDSHAKE else GET)

        assert await authenticated.reader.readexactly(1)  # fails if the connection is closed


async def test_a_closed_connection_no_longer_counts() -> None:
    async with serving(limit_per_address(1)) as server:
        for _ in range(5):
            client = await server.connect()
            await client.send(HANDSHAKE.replace(b"/key", b"/"))  # stays unauthenticated
            assert await client.read_status() == b"101"
            client.writer.close()
            await server.app.has_ended.wait()
            server.app.has_ended.clear()


@pytest.mark.parametrize("proxies", [(), ("127.0.0.1",)], ids=["clients", "a proxy"])
async def test_the_total_number_of_connections_is_limited(proxies: tuple[str, ...]) -> None:
    async with serving(replace(LIMITS, max_connections=2), proxies=proxies) as server:
        idle, busy = [await server.connect() for _ in range(2)]
        await idle.send(b"GET /key HTTP/1.1\r\n\r\n")
        await idle.read_response()
        await server.app.arrivals.get()
        await busy.send(b"GET /wait HTTP/1.1\r\n\r\n")
        await server.app.arrivals.get()

        new = await server.connect()
        assert await idle.read_rest() == b""  # replaced, although it is authenticated

        await new.send(b"GET /wait HTTP/1.1\r\n\r\n")
        await server.app.arrivals.get()
        assert await (await server.connect()).read_rest() == b""


async def test_a_connection_that_does_not_send_its_body_is_replaced() -> None:
    async with serving(limit_per_address(1)) as server:
        slow = await server.connect()
        await slow.send(b"POST /small HTTP/1.1\r\nContent-Length: 10\r\n\r\n")
        await server.app.arrivals.get()

        new = await server.connect()
        await new.send(GET)

        assert await new.read_status() == b"200"
        assert await slow.read_rest() == b""


async def test_requests_through_a_proxy_count_for_the_forwarded_address() -> None:
    def forwarded_request(path: str, address: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\nX-Forwarded-For: {address}\r\n\r\n".encode()

    async with serving(limit_per_address(1), proxies=("127.0.0.1",)) as server:
        first, second, third = [await server.connect() for _ in range(3)]
        await first.send(forwarded_request("/wait", "192.0.2.1"))
        await server.app.arrivals.get()

        await second.send(forwarded_request("/small", "192.0.2.1"))
        same_address = await second.read_status()
        await third.send(forwarded_request("/small", "192.0.2.2"))
        other_address = await third.read_status()
        server.app.may_answer.set()
        await first.read_response()
        await first.send(forwarded_request("/small", "192.0.2.1"))
        after_the_first_request = await first.read_status()

        assert (same_address, other_address) == (b"429", b"200")
        assert after_the_first_request == b"200"


async def test_a_pipelined_request_through_a_proxy_is_not_run() -> None:
    request = b"GET /wait HTTP/1.1\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
    async with serving(proxies=("127.0.0.1",)) as server:
        client = await server.connect()

        await client.send(request * 2)
        await client.read_rest()  # the server closes the connection: proxies do not pipeline

        assert server.app.num_requests == 1


async def test_an_address_forwarded_by_an_unknown_proxy_is_ignored() -> None:
    async with serving(limit_per_address(1)) as server:
        busy = await server.connect()
        await busy.send(b"GET /wait HTTP/1.1\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
        await server.app.arrivals.get()

        # Both connections count for 127.0.0.1, so the new one is rejected.
        assert await (await server.connect()).read_rest() == b""


async def test_a_connection_is_closed_after_the_maximum_number_of_requests() -> None:
    async with serving(replace(LIMITS, max_requests_per_connection=3)) as server:
        client = await server.connect()
        heads = []
        for _ in range(3):
            await client.send(GET)
            heads.append(await client.read_response())

        assert [b"connection: close" in head for head in heads] == [False, False, True]
        assert await client.read_rest() == b""
