"""Only a bounded number of requests run at once; slow senders and readers hold no slot."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from caret.foundation.web.body_limit import Application, Receive, Send
from caret.foundation.web.concurrency_limit import (
    ConcurrencyLimitMiddleware,
    ConcurrencyLimits,
    TooManyStalled,
)
from caret.foundation.web.health_checks import HealthCheckMiddleware

SCOPE = {"type": "http", "method": "GET", "path": "/"}


def limits(**changes: Any) -> ConcurrencyLimits:
    given = {
        "max_requests": 1,
        "max_wait_s": 0.05,
        "max_transfer_s": 0.05,
        "stall_s": 0.01,
        "max_stalled": 1,
        "max_held_bytes": 100,
        "max_held_bytes_per_address": 100,
        "uncounted_bytes": 0,
    }
    return ConcurrencyLimits(**(given | changes))


class Server:
    """Acts as the ASGI server; after the last chunk it is silent, like a waiting client."""

    def __init__(self, *chunks: bytes, more_follows: bool = False, reads: bool = True) -> None:
        self._events: list[Mapping[str, Any]] = [
            {"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks
        ]
        if not more_follows:
            self._events.append({"type": "http.request", "body": b"", "more_body": False})
        self._may_send = asyncio.Event()
        if reads:
            self.read_on()
        self.sent: list[Mapping[str, Any]] = []

    async def receive(self) -> Mapping[str, Any]:
        if not self._events:
            await asyncio.Event().wait()
        return self._events.pop(0)

    async def send(self, event: Mapping[str, Any]) -> None:
        await self._may_send.wait()
        self.sent.append(event)

    def read_on(self) -> None:
        self._may_send.set()

    @property
    def body(self) -> bytes:
        return b"".join(event.get("body", b"") for event in self.sent)

    @property
    def status(self) -> int:
        status: int = self.sent[0]["status"]
        return status


class Echo:
    """Responds with the body once the test allows it."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.num_running = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self.num_running += 1
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


class TwoParts:
    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one ", "more_body": True})
        await send({"type": "http.response.body", "body": b"two"})


async def ask(application: Application, server: Server, *, address: str = "192.0.2.1") -> Server:
    await application(SCOPE | {"client": (address, 1)}, server.receive, server.send)
    return server


async def test_a_body_arrives_whole() -> None:
    echo = Echo()
    echo.may_answer.set()

    server = await ask(ConcurrencyLimitMiddleware(echo, limits()), Server(b"one ", b"two"))

    assert server.sent[-1]["body"] == b"one two"


async def test_one_request_too_many_is_told_when_to_try_again() -> None:
    echo = Echo()
    limited = ConcurrencyLimitMiddleware(echo, limits())
    async with asyncio.TaskGroup() as group:
        first = group.create_task(ask(limited, Server()))
        await asyncio.sleep(0)
        second = await ask(limited, Server())
        echo.may_answer.set()

    assert (first.result().status, second.status) == (200, 503)
    assert (b"retry-after", b"5") in second.sent[0]["headers"]


async def test_a_place_is_free_again_after_the_first_request() -> None:
    echo = Echo()
    limited = ConcurrencyLimitMiddleware(echo, limits(max_wait_s=5))
    async with asyncio.TaskGroup() as group:
        both = [group.create_task(ask(limited, Server())) for _ in range(2)]
        await asyncio.sleep(0.01)
        num_running = echo.num_running
        echo.may_answer.set()

    assert num_running == 1
    assert [task.result().status for task in both] == [200, 200]


async def test_a_slow_sender_has_no_place_and_is_cut_off() -> None:
    echo = Echo()
    echo.may_answer.set()
    limited = ConcurrencyLimitMiddleware(echo, limits(max_transfer_s=0.2))
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(ask(limited, Server(b"x", more_follows=True)))
        await asyncio.sleep(0.01)
        other = await ask(limited, Server())

    assert (slow.result().status, other.status) == (408, 200)


async def test_slow_bodies_together_hold_only_so_many_bytes() -> None:
    limited = ConcurrencyLimitMiddleware(Echo(), limits(max_transfer_s=0.2))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(ask(limited, Server(b"x" * 80, more_follows=True)))
        await asyncio.sleep(0.01)
        second = await ask(limited, Server(b"x" * 30, more_follows=True))

    assert (first.result().status, second.status) == (408, 503)


async def test_the_slow_bodies_of_one_address_leave_room_for_others() -> None:
    echo = Echo()
    echo.may_answer.set()
    limited = ConcurrencyLimitMiddleware(
        echo, limits(max_transfer_s=0.2, max_held_bytes_per_address=50)
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(ask(limited, Server(b"x" * 40, more_follows=True)))
        await asyncio.sleep(0.01)
        same = await ask(limited, Server(b"x" * 30))
        other = await ask(limited, Server(b"x" * 30), address="192.0.2.2")

    assert (same.status, other.status) == (503, 200)


async def test_small_bodies_get_through_beside_large_ones() -> None:
    echo = Echo()
    echo.may_answer.set()
    limited = ConcurrencyLimitMiddleware(echo, limits(max_transfer_s=0.2, uncounted_bytes=10))
    async with asyncio.TaskGroup() as group:
        group.create_task(ask(limited, Server(b"x" * 110, more_follows=True)))
        await asyncio.sleep(0.01)
        small = await ask(limited, Server(b"x" * 10))
        large = await ask(limited, Server(b"x" * 11))

    assert (small.status, large.status) == (200, 503)


async def test_bytes_of_finished_bodies_do_not_count() -> None:
    echo = Echo()
    echo.may_answer.set()
    limited = ConcurrencyLimitMiddleware(echo, limits())

    answers = [(await ask(limited, Server(b"x" * 80))).status for _ in range(3)]

    assert answers == [200, 200, 200]


async def test_a_client_that_does_not_read_keeps_nobody_else_waiting() -> None:
    echo = Echo()
    echo.may_answer.set()
    limited = ConcurrencyLimitMiddleware(echo, limits(max_wait_s=5))
    slow = Server(reads=False)
    async with asyncio.TaskGroup() as group:
        stalled = group.create_task(ask(limited, slow))
        other = await ask(limited, Server())
        slow.read_on()

    assert (stalled.result().status, other.status) == (200, 200)


async def test_a_stalled_request_goes_on_in_a_place_of_its_own() -> None:
    limited = ConcurrencyLimitMiddleware(TwoParts(), limits(max_wait_s=5))
    slow, quick = Server(reads=False), Server()
    async with asyncio.TaskGroup() as group:
        group.create_task(ask(limited, slow))
        await ask(limited, quick)
        slow.read_on()

    assert slow.body == quick.body == b"one two"


async def test_one_stalled_request_too_many_is_ended() -> None:
    echo = Echo()
    echo.may_answer.set()
    limited = ConcurrencyLimitMiddleware(echo, limits(max_wait_s=5))
    slow = Server(reads=False)
    async with asyncio.TaskGroup() as group:
        group.create_task(ask(limited, slow))
        await asyncio.sleep(0)
        with pytest.raises(TooManyStalled):
            await ask(limited, Server(reads=False))
        other = await ask(limited, Server())
        slow.read_on()

    assert other.status == 200


async def test_a_client_that_leaves_while_sending_gets_no_answer() -> None:
    echo = Echo()
    server = Server(b"x", more_follows=True)
    server._events.append({"type": "http.disconnect"})

    await ask(ConcurrencyLimitMiddleware(echo, limits()), server)

    assert server.sent == []
    assert echo.num_running == 0


async def not_ready() -> bool:
    return False


@pytest.mark.parametrize(("method", "body"), [("GET", b"ok\n"), ("HEAD", b"")])
async def test_the_probe_needs_no_place(method: str, body: bytes) -> None:
    server = Server()

    await HealthCheckMiddleware(Echo(), not_ready)(
        {"type": "http", "method": method, "path": "/healthz"}, server.receive, server.send
    )

    assert server.status == 200
    assert server.sent[-1]["body"] == body


async def test_what_is_no_probe_is_passed_on() -> None:
    echo = Echo()
    echo.may_answer.set()

    server = await ask(HealthCheckMiddleware(echo, not_ready), Server(b"a page"))

    assert server.sent[-1]["body"] == b"a page"
