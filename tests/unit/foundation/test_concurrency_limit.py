"""Only a limited number of requests run at once.

A running request has a slot. A client that sends or reads slowly holds no slot. The last tests
check that health probes do not reach the application.
"""

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


def make_limits(**changes: Any) -> ConcurrencyLimits:
    """Return limits of one running request and 100 bytes of bodies, with short times."""
    fields = {
        "max_requests": 1,
        "max_wait_s": 0.05,  # for a slot
        "max_transfer_s": 0.05,  # for the arrival of a whole body
        "stall_s": 0.01,  # after this, a client that does not read its response loses the slot
        "max_stalled": 1,  # requests that have lost their slots
        "max_held_bytes": 100,
        "max_held_bytes_per_address": 100,
        "uncounted_bytes": 0,  # at the start of each body
    }
    return ConcurrencyLimits(**(fields | changes))


class Server:
    """Acts as the ASGI server of one request, whose body has these chunks. Records its response.

    If `is_endless` is true, the body never ends. If `is_reading` is false, the client does not read
    the response until the test calls `resume_reading`.
    """

    def __init__(self, *chunks: bytes, is_endless: bool = False, is_reading: bool = True) -> None:
        self._events: list[Mapping[str, Any]] = [
            {"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks
        ]
        if not is_endless:
            self._events.append({"type": "http.request", "body": b"", "more_body": False})
        self._may_send = asyncio.Event()
        if is_reading:
            self.resume_reading()
        self.sent: list[Mapping[str, Any]] = []

    async def receive(self) -> Mapping[str, Any]:
        if not self._events:
            await asyncio.Event().wait()
        return self._events.pop(0)

    async def send(self, event: Mapping[str, Any]) -> None:
        await self._may_send.wait()
        self.sent.append(event)

    def resume_reading(self) -> None:
        self._may_send.set()

    @property
    def body(self) -> bytes:
        return b"".join(event.get("body", b"") for event in self.sent)

    @property
    def status(self) -> int:
        status: int = self.sent[0]["status"]
        return status


class Echo:
    """An application that responds with the request's body once the test allows it."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.num_started = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self.num_started += 1
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
    """An application that responds with a body in two parts."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one ", "more_body": True})
        await send({"type": "http.response.body", "body": b"two"})


async def send_request(
    application: Application, server: Server, *, address: str = "192.0.2.1"
) -> Server:
    await application(SCOPE | {"client": (address, 1)}, server.receive, server.send)
    return server


async def test_a_body_arrives_complete() -> None:
    echo = Echo()
    echo.may_answer.set()

    server = await send_request(
        ConcurrencyLimitMiddleware(echo, make_limits()), Server(b"one ", b"two")
    )

    assert server.sent[-1]["body"] == b"one two"


async def test_a_request_over_the_limit_is_rejected_with_retry_after() -> None:
    echo = Echo()
    middleware = ConcurrencyLimitMiddleware(echo, make_limits())
    async with asyncio.TaskGroup() as group:
        first = group.create_task(send_request(middleware, Server()))
        await asyncio.sleep(0)
        second = await send_request(middleware, Server())
        echo.may_answer.set()

    assert (first.result().status, second.status) == (200, 503)
    assert (b"retry-after", b"5") in second.sent[0]["headers"]  # seconds


async def test_a_second_request_waits_until_the_first_one_frees_its_slot() -> None:
    echo = Echo()
    middleware = ConcurrencyLimitMiddleware(echo, make_limits(max_wait_s=5))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(send_request(middleware, Server())) for _ in range(2)]
        await asyncio.sleep(0.01)
        num_started_before_answer = echo.num_started
        echo.may_answer.set()

    assert num_started_before_answer == 1
    assert [task.result().status for task in tasks] == [200, 200]


async def test_a_slow_sender_holds_no_slot_and_times_out() -> None:
    echo = Echo()
    echo.may_answer.set()
    middleware = ConcurrencyLimitMiddleware(echo, make_limits(max_transfer_s=0.2))
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(send_request(middleware, Server(b"x", is_endless=True)))
        await asyncio.sleep(0.01)
        second = await send_request(middleware, Server())

    assert (slow.result().status, second.status) == (408, 200)


async def test_the_bytes_held_for_slow_bodies_are_limited() -> None:
    middleware = ConcurrencyLimitMiddleware(Echo(), make_limits(max_transfer_s=0.2))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(send_request(middleware, Server(b"x" * 80, is_endless=True)))
        await asyncio.sleep(0.01)
        second = await send_request(middleware, Server(b"x" * 30, is_endless=True))

    assert (first.result().status, second.status) == (408, 503)


async def test_the_bytes_held_for_one_address_are_limited() -> None:
    echo = Echo()
    echo.may_answer.set()
    middleware = ConcurrencyLimitMiddleware(
        echo, make_limits(max_transfer_s=0.2, max_held_bytes_per_address=50)
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(send_request(middleware, Server(b"x" * 40, is_endless=True)))
        await asyncio.sleep(0.01)
        same_address = await send_request(middleware, Server(b"x" * 30))
        other_address = await send_request(middleware, Server(b"x" * 30), address="192.0.2.2")

    assert (same_address.status, other_address.status) == (503, 200)


async def test_small_bodies_are_accepted_beside_large_ones() -> None:
    echo = Echo()
    echo.may_answer.set()
    # The first 10 bytes of a body are not counted. The other 100 of the large body reach the limit.
    middleware = ConcurrencyLimitMiddleware(
        echo, make_limits(max_transfer_s=0.2, uncounted_bytes=10)
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(send_request(middleware, Server(b"x" * 110, is_endless=True)))
        await asyncio.sleep(0.01)
        small = await send_request(middleware, Server(b"x" * 10))
        large = await send_request(middleware, Server(b"x" * 11))

    assert (small.status, large.status) == (200, 503)


async def test_bytes_of_finished_requests_do_not_count() -> None:
    echo = Echo()
    echo.may_answer.set()
    middleware = ConcurrencyLimitMiddleware(echo, make_limits())

    statuses = [(await send_request(middleware, Server(b"x" * 80))).status for _ in range(3)]

    assert statuses == [200, 200, 200]


async def test_bytes_of_a_request_that_timed_out_do_not_count() -> None:
    echo = Echo()
    echo.may_answer.set()
    middleware = ConcurrencyLimitMiddleware(echo, make_limits())

    incomplete = await send_request(middleware, Server(b"x" * 80, is_endless=True))
    second = await send_request(middleware, Server(b"x" * 80))

    assert (incomplete.status, second.status) == (408, 200)


async def test_a_client_that_does_not_read_does_not_block_others() -> None:
    echo = Echo()
    echo.may_answer.set()
    middleware = ConcurrencyLimitMiddleware(echo, make_limits(max_wait_s=5))
    slow = Server(is_reading=False)
    async with asyncio.TaskGroup() as group:
        stalled = group.create_task(send_request(middleware, slow))
        await asyncio.sleep(0)
        second = await send_request(middleware, Server())
        slow.resume_reading()

    assert (stalled.result().status, second.status) == (200, 200)


async def test_a_stalled_request_is_completed_when_its_client_reads_again() -> None:
    middleware = ConcurrencyLimitMiddleware(TwoParts(), make_limits(max_wait_s=5))
    slow, quick = Server(is_reading=False), Server()
    async with asyncio.TaskGroup() as group:
        group.create_task(send_request(middleware, slow))
        await asyncio.sleep(0)
        await send_request(middleware, quick)
        slow.resume_reading()

    assert slow.body == quick.body == b"one two"


async def test_the_number_of_slots_stays_the_same_after_a_stalled_request() -> None:
    echo = Echo()
    echo.may_answer.set()
    middleware = ConcurrencyLimitMiddleware(echo, make_limits(max_wait_s=5))
    slow = Server(is_reading=False)
    async with asyncio.TaskGroup() as group:
        group.create_task(send_request(middleware, slow))
        await asyncio.sleep(0)
        await send_request(middleware, Server())
        slow.resume_reading()

    echo.may_answer.clear()
    num_started_before = echo.num_started
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(send_request(middleware, Server()))
        await asyncio.sleep(0.01)
        num_running = echo.num_started - num_started_before
        echo.may_answer.set()

    assert num_running == 1


async def test_the_number_of_stalled_requests_is_limited() -> None:
    echo = Echo()
    echo.may_answer.set()
    middleware = ConcurrencyLimitMiddleware(echo, make_limits(max_wait_s=5))
    slow = Server(is_reading=False)
    async with asyncio.TaskGroup() as group:
        group.create_task(send_request(middleware, slow))
        await asyncio.sleep(0)
        with pytest.raises(TooManyStalled):
            await send_request(middleware, Server(is_reading=False))
        second = await send_request(middleware, Server())
        slow.resume_reading()

    assert second.status == 200


async def test_a_client_that_disconnects_while_sending_gets_no_response() -> None:
    echo = Echo()
    server = Server(b"x", is_endless=True)
    server._events.append({"type": "http.disconnect"})

    await send_request(ConcurrencyLimitMiddleware(echo, make_limits()), server)

    assert server.sent == []
    assert echo.num_started == 0


# --- the health check, which is answered before a request needs a slot


async def not_ready() -> bool:
    return False


@pytest.mark.parametrize(("method", "body"), [("GET", b"ok\n"), ("HEAD", b"")])
async def test_the_health_probe_does_not_reach_the_application(method: str, body: bytes) -> None:
    echo, server = Echo(), Server()

    await HealthCheckMiddleware(echo, not_ready)(
        {"type": "http", "method": method, "path": "/healthz"}, server.receive, server.send
    )

    assert server.status == 200
    assert server.sent[-1]["body"] == body
    assert echo.num_started == 0


async def test_other_requests_pass_the_health_check() -> None:
    echo = Echo()
    echo.may_answer.set()

    server = await send_request(HealthCheckMiddleware(echo, not_ready), Server(b"a page"))

    assert server.sent[-1]["body"] == b"a page"
