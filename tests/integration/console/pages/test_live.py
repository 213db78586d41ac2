"""Live figures over a WebSocket: access to the socket, and its messages."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from itertools import chain, repeat
from threading import Event
from typing import Any

import pytest
import structlog
from django.db import DatabaseError

from console.live_metrics import consumer as live
from console.live_metrics.access_feed import AccessFeed
from console.live_metrics.broadcaster import (
    MAX_OF_TENANT,
    MAX_SOCKETS_OF_USER,
    LiveBroadcaster,
    TooManyViewers,
)
from tenants.base.permissions import Role
from tenants.security.authorization.actor import Actor
from tenants.usage.requests.last_minute import read_last_minute
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.live_socket import (
    OWN_ORIGIN,
    read_first_message,
    session_key_of,
    socket,
)
from tests.integration.console.pages.usage_rows import add_requests, make_colleagues

# So that the requests of the last minute do not become older during a test.
pytestmark = pytest.mark.usefixtures("stopped_clock")


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def test_an_administrator_gets_the_figures_of_the_tenant(company: Company, sign_in: SignIn) -> None:
    add_requests(company, company.developer, num=2, accepted=1)
    add_requests(company, company.administrator)
    session = session_key_of(sign_in(company.administrator))

    async def receive() -> dict[str, str]:
        async with socket(session) as opened_socket:
            return await read_first_message(opened_socket)

    figures = asyncio.run(receive())

    assert (figures["requests"], figures["p99"]) == ("3", "40 ms")  # see add_requests


# Figures of fewer than five users are hidden.
@pytest.mark.parametrize(("num_users", "expected"), [(4, "–"), (5, "5")])
def test_acceptances_of_few_users_are_hidden(
    company: Company, sign_in: SignIn, num_users: int, expected: str
) -> None:
    for person in make_colleagues(company, num_users):
        add_requests(company, person, accepted=1)
    session = session_key_of(sign_in(company.administrator))

    async def listen() -> dict[str, str]:
        async with socket(session) as opened_socket:
            return await read_first_message(opened_socket)

    assert asyncio.run(listen())["accepted"] == expected


def test_a_developer_gets_their_own_acceptances(company: Company, sign_in: SignIn) -> None:
    add_requests(company, company.developer, accepted=1)
    session = session_key_of(sign_in(company.developer))

    async def receive() -> dict[str, str]:
        async with socket(session) as opened_socket:
            return await read_first_message(opened_socket)

    assert asyncio.run(receive())["accepted"] == "1"


def test_a_developer_gets_only_their_own_figures(company: Company, sign_in: SignIn) -> None:
    add_requests(company, company.developer, num=2)
    add_requests(company, company.administrator)
    session = session_key_of(sign_in(company.developer))

    async def receive() -> dict[str, str]:
        async with socket(session) as opened_socket:
            return await read_first_message(opened_socket)

    assert asyncio.run(receive())["requests"] == "2"


def test_another_tenant_does_not_get_the_figures(company: Company, sign_in: SignIn) -> None:
    add_requests(company, company.developer, num=2)
    session = session_key_of(sign_in(make_company("globex", GLOBEX_PEOPLE).administrator))

    async def receive() -> dict[str, str]:
        async with socket(session) as opened_socket:
            return await read_first_message(opened_socket)

    assert asyncio.run(receive())["requests"] == "0"


@pytest.mark.parametrize(
    ("origin", "path"),
    [
        (b"https://evil.example", "/live"),
        (b"http://testserver.evil.example", "/live"),
        (b"https://testserver", "/live"),
        (b"null", "/live"),
        (None, "/live"),
        (OWN_ORIGIN, "/livelier"),
    ],
)
def test_a_socket_from_another_origin_or_path_is_refused(
    company: Company, sign_in: SignIn, origin: bytes | None, path: str
) -> None:
    session = session_key_of(sign_in(company.administrator))

    async def is_refused() -> bool:
        async with socket(session, origin=origin, path=path) as opened_socket:
            return not await opened_socket.connect()

    assert asyncio.run(is_refused())


@pytest.mark.parametrize("session", ["", "x", "a" * 32])
def test_a_socket_without_a_session_is_refused(session: str) -> None:
    async def is_refused() -> bool:
        async with socket(session) as opened_socket:
            return not await opened_socket.connect()

    assert asyncio.run(is_refused())


def test_no_listener_is_left_when_a_socket_closes_early() -> None:
    """Cancel the listener after 0 to 59 event-loop steps, during which it connects to Redis."""

    async def cancel_listener(after_steps: int) -> set[asyncio.Task[None]]:
        """Return the tasks of the listener that do not end."""
        with AccessFeed().watch("a session"):
            for _ in range(after_steps):
                await asyncio.sleep(0)
        listeners = asyncio.all_tasks() - {asyncio.current_task()}
        if not listeners:
            return set()
        _, running = await asyncio.wait(listeners, timeout=300)
        return running

    async def cancel_in_each_step() -> set[asyncio.Task[None]]:
        return set().union(*[await cancel_listener(steps) for steps in range(60)])

    assert asyncio.run(cancel_in_each_step()) == set()


def counting_broadcaster() -> tuple[LiveBroadcaster[int], list[Actor]]:
    """Return a broadcaster, and the list of the actors of its readings.

    Each reading is the number of readings so far. Each group of viewers gets only one, because the
    broadcaster then sleeps forever.
    """
    read_for: list[Actor] = []

    async def read_number(actor: Actor) -> int:
        read_for.append(actor)
        return len(read_for)

    return LiveBroadcaster(read_number, sleep=_sleep_forever), read_for


async def _sleep_briefly(_seconds: float) -> None:
    await asyncio.sleep(0)


async def _sleep_forever(_seconds: float) -> None:
    await asyncio.Event().wait()


def test_two_viewers_of_the_same_figures_share_one_reading(company: Company) -> None:
    broadcaster, read_for = counting_broadcaster()

    async def read_figures() -> tuple[int, int]:
        with (
            broadcaster.subscribe(company.administrator.actor) as first,
            broadcaster.subscribe(company.people[Role.OWNER].actor) as second,
        ):
            return await anext(first), await anext(second)

    assert asyncio.run(read_figures()) == (1, 1)
    assert len(read_for) == 1


def test_a_developers_own_figures_are_read_separately(company: Company) -> None:
    broadcaster, read_for = counting_broadcaster()

    async def read_figures() -> None:
        with (
            broadcaster.subscribe(company.administrator.actor) as administrator_figures,
            broadcaster.subscribe(company.developer.actor) as developer_figures,
        ):
            await anext(administrator_figures)
            await anext(developer_figures)

    asyncio.run(read_figures())

    assert len(read_for) == 2


@pytest.mark.parametrize(
    ("num_people", "max_of_each"),
    [
        (1, MAX_SOCKETS_OF_USER),
        (5, MAX_OF_TENANT // 5),  # fewer for each user than MAX_SOCKETS_OF_USER
    ],
    ids=["limit of a user", "limit of the tenant"],
)
def test_sockets_are_limited_and_released(
    company: Company, num_people: int, max_of_each: int
) -> None:
    broadcaster, _ = counting_broadcaster()
    actors = [person.actor for person in company.people.values()][:num_people]

    async def read_figures() -> None:
        subscriptions = [
            broadcaster.subscribe(actor) for actor in actors for _ in range(max_of_each)
        ]
        for subscription in subscriptions:
            subscription.__enter__()
        for actor in actors:
            with pytest.raises(TooManyViewers), broadcaster.subscribe(actor):
                pass
        subscriptions[0].__exit__(None, None, None)
        with broadcaster.subscribe(actors[0]) as readings:
            assert await anext(readings) == 1

    asyncio.run(read_figures())


def test_one_users_tabs_leave_sockets_for_colleagues(company: Company) -> None:
    broadcaster, _ = counting_broadcaster()

    async def read_figures() -> int:
        for _ in range(MAX_SOCKETS_OF_USER):
            broadcaster.subscribe(company.administrator.actor).__enter__()
        with broadcaster.subscribe(company.developer.actor) as readings:
            return await anext(readings)

    assert asyncio.run(read_figures()) == 1


@pytest.mark.parametrize("error", [ValueError("x"), ZeroDivisionError(), DatabaseError()])
def test_a_failed_reading_is_repeated(company: Company, error: Exception) -> None:
    results: Iterator[int | Exception] = chain([error, error], repeat(7))

    async def fail_then_read(_actor: Actor) -> int:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    async def read_figures() -> int:
        with LiveBroadcaster(fail_then_read, sleep=_sleep_briefly).subscribe(
            company.administrator.actor
        ) as readings:
            return await asyncio.wait_for(anext(readings), 300)

    with structlog.testing.capture_logs() as lines:
        assert asyncio.run(read_figures()) == 7
    assert [line["event"] for line in lines] == ["live.read_failed"] * 2


def test_a_slow_reading_delays_no_other_tenant(
    company: Company, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_company = make_company("globex", GLOBEX_PEOPLE)
    has_begun, is_released = Event(), Event()

    def read_slowly(*, actor: Actor, now: datetime) -> Any:
        if actor.tenant_id == company.tenant_id:
            has_begun.set()
            is_released.wait(300)
        return read_last_minute(actor=actor, now=now)

    monkeypatch.setattr(live, "read_last_minute", read_slowly)
    slow_session = session_key_of(sign_in(company.administrator))
    session = session_key_of(sign_in(other_company.administrator))

    async def receive() -> dict[str, str]:
        async with socket(slow_session) as waiting, socket(session) as opened_socket:
            assert await waiting.connect()
            try:
                assert await asyncio.to_thread(has_begun.wait, 300)
                return await read_first_message(opened_socket)
            finally:
                is_released.set()

    assert asyncio.run(receive())["requests"] == "0"
