"""The connection limits of the HTTP servers, over real sockets."""

from dataclasses import replace

import pytest

from caret.foundation.web.server_limits import ServerLimits
from tests.unit.foundation.limited_server import GET, HANDSHAKE, LIMITS, serving, text_frame


def per_address(num: int) -> ServerLimits:
    return replace(LIMITS, max_unauthenticated_per_address=num)


async def test_a_new_connection_takes_the_room_of_the_one_that_has_waited_longest() -> None:
    async with serving(per_address(2)) as server:
        idle = await server.connect()
        slow = await server.connect()
        await idle.send(GET)
        await idle.response()

        first = await server.connect()
        assert await slow.rest() == b""
        await server.connect()
        assert await idle.rest() == b""
        await server.connect()
        assert await first.rest() == b""


async def test_other_addresses_have_room_of_their_own() -> None:
    async with serving(per_address(2)) as server:
        neighbour = await server.connect("127.0.0.2")
        for _ in range(5):
            await server.connect("127.0.0.3")

        await neighbour.send(GET)

        assert await neighbour.status() == b"200"


async def test_a_connection_is_refused_where_all_others_are_being_answered() -> None:
    async with serving(per_address(2)) as server:
        busy = [await server.connect() for _ in range(2)]
        for client in busy:
            await client.send(b"GET /wait HTTP/1.1\r\n\r\n")
            await server.app.arrivals.get()

        new = await server.connect()
        ended = await new.rest()
        server.app.may_answer.set()

        assert ended == b""
        assert [await client.status() for client in busy] == [b"200", b"200"]


@pytest.mark.parametrize(
    "request_", [b"GET /key HTTP/1.1\r\n\r\n", HANDSHAKE], ids=["HTTP", "WebSocket"]
)
async def test_a_connection_with_a_credential_is_not_closed_for_others(request_: bytes) -> None:
    async with serving(per_address(2)) as server:
        known = await server.connect()
        await known.send(request_)
        await known.response()

        for _ in range(5):
            await server.connect()
        await known.send(text_frame("small") if request_ is HANDSHAKE else GET)

        assert await known.reader.readexactly(1)


async def test_a_connection_that_has_ended_makes_room() -> None:
    async with serving(per_address(1)) as server:
        for _ in range(5):
            client = await server.connect()
            await client.send(HANDSHAKE.replace(b"/key", b"/"))
            assert await client.status() == b"101"
            client.writer.close()
            await server.app.has_ended.wait()
            server.app.has_ended.clear()


@pytest.mark.parametrize("proxies", [(), ("127.0.0.1",)], ids=["clients", "a proxy"])
async def test_all_connections_together_are_bounded(proxies: tuple[str, ...]) -> None:
    async with serving(replace(LIMITS, max_connections=2), proxies=proxies) as server:
        idle, busy = [await server.connect() for _ in range(2)]
        await idle.send(b"GET /key HTTP/1.1\r\n\r\n")
        await idle.response()
        await server.app.arrivals.get()
        await busy.send(b"GET /wait HTTP/1.1\r\n\r\n")
        await server.app.arrivals.get()

        new = await server.connect()
        assert await idle.rest() == b""
        await new.send(b"GET /wait HTTP/1.1\r\n\r\n")
        await server.app.arrivals.get()
        assert await (await server.connect()).rest() == b""


async def test_a_connection_whose_body_does_not_come_gives_way() -> None:
    async with serving(per_address(1)) as server:
        slow = await server.connect()
        await slow.send(b"POST /small HTTP/1.1\r\nContent-Length: 10\r\n\r\n")
        await server.app.arrivals.get()

        new = await server.connect()
        await new.send(GET)

        assert await new.status() == b"200"
        assert await slow.rest() == b""


async def test_behind_a_proxy_requests_count_for_the_forwarded_address() -> None:
    def asking(path: str, address: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\nX-Forwarded-For: {address}\r\n\r\n".encode()

    async with serving(per_address(1), proxies=("127.0.0.1",)) as server:
        first, second, third = [await server.connect() for _ in range(3)]
        await first.send(asking("/wait", "192.0.2.1"))
        await server.app.arrivals.get()

        await second.send(asking("/small", "192.0.2.1"))
        same = await second.status()
        await third.send(asking("/small", "192.0.2.2"))
        other = await third.status()
        server.app.may_answer.set()
        await first.response()
        await first.send(asking("/small", "192.0.2.1"))

        assert (same, other, await first.status()) == (b"429", b"200", b"200")


async def test_a_proxy_does_not_pipeline() -> None:
    request = b"GET /wait HTTP/1.1\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
    async with serving(proxies=("127.0.0.1",)) as server:
        client = await server.connect()

        await client.send(request * 2)
        await client.rest()

        assert server.app.num_requests == 1


async def test_an_address_that_a_stranger_forwards_does_not_count() -> None:
    async with serving(per_address(1)) as server:
        busy = await server.connect()
        await busy.send(b"GET /wait HTTP/1.1\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
        await server.app.arrivals.get()

        assert await (await server.connect()).rest() == b""


async def test_a_connection_ends_after_its_last_request() -> None:
    async with serving(replace(LIMITS, max_requests_per_connection=3)) as server:
        client = await server.connect()
        heads = []
        for _ in range(3):
            await client.send(GET)
            heads.append(await client.response())

        assert [b"connection: close" in head for head in heads] == [False, False, True]
        assert await client.rest() == b""
