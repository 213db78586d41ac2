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
from console.live_metrics.broadcaster import (
    MAX_OF_PERSON,
    MAX_OF_TENANT,
    LiveBroadcaster,
    TooManyViewers,
)
from tenants.security.authorization.actor import Actor
from tenants.usage.requests.last_minute import read_last_minute
from tests.fixtures.companies import ACME, GLOBEX, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.live_socket import OWN, Socket, first, session_of, socket
from tests.integration.console.pages.usage_rows import colleagues, use


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME)


async def is_refused(opened: Socket) -> bool:
    return not await opened.is_let_in()


def test_who_sees_all_is_told_of_all(company: Company, sign_in: SignIn) -> None:
    use(company, company.developer, num=2, accepted=1)
    use(company, company.administrator)
    session = session_of(sign_in(company.administrator))

    async def told() -> dict[str, str]:
        async with socket(session) as opened:
            return await first(opened)

    said = asyncio.run(told())

    assert (said["requests"], said["p99"]) == ("3", "40 ms")


@pytest.mark.parametrize(("num", "told"), [(4, "–"), (5, "5")])
def test_what_few_people_have_accepted_is_not_told(
    company: Company, sign_in: SignIn, num: int, told: str
) -> None:
    for person in colleagues(company, num):
        use(company, person, accepted=1)
    session = session_of(sign_in(company.administrator))

    async def listen() -> dict[str, str]:
        async with socket(session) as opened:
            return await first(opened)

    assert asyncio.run(listen())["accepted"] == told


def test_what_one_has_accepted_is_told_to_oneself(company: Company, sign_in: SignIn) -> None:
    use(company, company.developer, accepted=1)
    session = session_of(sign_in(company.developer))

    async def told() -> dict[str, str]:
        async with socket(session) as opened:
            return await first(opened)

    assert asyncio.run(told())["accepted"] == "1"


def test_a_developer_is_told_of_his_own(company: Company, sign_in: SignIn) -> None:
    use(company, company.developer, num=2)
    use(company, company.administrator)
    session = session_of(sign_in(company.developer))

    async def told() -> dict[str, str]:
        async with socket(session) as opened:
            return await first(opened)

    assert asyncio.run(told())["requests"] == "2"


def test_the_neighbour_is_told_nothing_of_it(company: Company, sign_in: SignIn) -> None:
    use(company, company.developer, num=2)
    session = session_of(sign_in(make_company("globex", GLOBEX).administrator))

    async def told() -> dict[str, str]:
        async with socket(session) as opened:
            return await first(opened)

    assert asyncio.run(told())["requests"] == "0"


@pytest.mark.parametrize(
    ("origin", "path"),
    [
        (b"https://evil.example", "/live"),
        (b"http://testserver.evil.example", "/live"),
        (b"https://testserver", "/live"),
        (b"null", "/live"),
        (None, "/live"),
        (OWN, "/livelier"),
    ],
)
def test_a_page_of_somebody_else_opens_no_socket(
    company: Company, sign_in: SignIn, origin: bytes | None, path: str
) -> None:
    session = session_of(sign_in(company.administrator))

    async def refused() -> bool:
        async with socket(session, origin=origin, path=path) as opened:
            return await is_refused(opened)

    assert asyncio.run(refused())


@pytest.mark.parametrize("session", ["", "x", "a" * 32])
def test_nobody_opens_a_socket_without_a_session(session: str) -> None:
    async def refused() -> bool:
        async with socket(session) as opened:
            return await is_refused(opened)

    assert asyncio.run(refused())


def counting() -> tuple[LiveBroadcaster[int], list[Actor]]:
    asked: list[Actor] = []

    async def read(actor: Actor) -> int:
        asked.append(actor)
        return len(asked)

    return LiveBroadcaster(read, sleep=_never), asked


async def _briefly(_seconds: float) -> None:
    await asyncio.sleep(0)


async def _never(_seconds: float) -> None:
    await asyncio.Event().wait()


def test_what_two_look_at_is_read_once(company: Company) -> None:
    board, asked = counting()

    async def look() -> tuple[int, int]:
        with (
            board.subscribe(company.administrator.actor) as one,
            board.subscribe(company.people[next(iter(ACME))].actor) as other,
        ):
            return await anext(one), await anext(other)

    assert asyncio.run(look()) == (1, 1)
    assert len(asked) == 1


def test_ones_own_is_read_apart(company: Company) -> None:
    board, asked = counting()

    async def look() -> None:
        with (
            board.subscribe(company.administrator.actor) as one,
            board.subscribe(company.developer.actor) as other,
        ):
            await anext(one)
            await anext(other)

    asyncio.run(look())

    assert len(asked) == 2


@pytest.mark.parametrize(
    ("num_people", "max_of_each"), [(1, MAX_OF_PERSON), (5, MAX_OF_TENANT // 5)]
)
def test_sockets_are_bounded_and_given_back(
    company: Company, num_people: int, max_of_each: int
) -> None:
    board, _ = counting()
    actors = [person.actor for person in company.people.values()][:num_people]

    async def look() -> None:
        held = [board.subscribe(actor) for actor in actors for _ in range(max_of_each)]
        for each in held:
            each.__enter__()
        for actor in actors:
            with pytest.raises(TooManyViewers), board.subscribe(actor):
                pass
        held[0].__exit__(None, None, None)
        with board.subscribe(actors[0]) as readings:
            assert await anext(readings) == 1

    asyncio.run(look())


def test_one_persons_tabs_leave_places_to_colleagues(company: Company) -> None:
    board, _ = counting()

    async def look() -> int:
        for _ in range(MAX_OF_PERSON):
            board.subscribe(company.administrator.actor).__enter__()
        with board.subscribe(company.developer.actor) as readings:
            return await anext(readings)

    assert asyncio.run(look()) == 1


@pytest.mark.parametrize("error", [ValueError("x"), ZeroDivisionError(), DatabaseError()])
def test_what_cannot_be_read_once_is_read_again(company: Company, error: Exception) -> None:
    results: Iterator[int | Exception] = chain([error, error], repeat(7))

    async def read(_actor: Actor) -> int:
        found = next(results)
        if isinstance(found, Exception):
            raise found
        return found

    async def look() -> int:
        with LiveBroadcaster(read, sleep=_briefly).subscribe(
            company.administrator.actor
        ) as readings:
            return await asyncio.wait_for(anext(readings), 30)

    with structlog.testing.capture_logs() as lines:
        assert asyncio.run(look()) == 7
    assert [line["event"] for line in lines] == ["live.not_read"] * 2


def test_a_slow_reading_holds_up_nobody_else(
    company: Company, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_company("globex", GLOBEX)
    goes_on = Event()

    def slow(*, actor: Actor, now: datetime) -> Any:
        if actor.tenant_id == company.tenant_id:
            goes_on.wait(60)
        return read_last_minute(actor=actor, now=now)

    monkeypatch.setattr(live, "read_last_minute", slow)
    held_up = session_of(sign_in(company.administrator))
    session = session_of(sign_in(other.administrator))

    async def told() -> dict[str, str]:
        async with socket(held_up) as waiting, socket(session) as opened:
            assert await waiting.is_let_in()
            try:
                return await first(opened)
            finally:
                goes_on.set()

    assert asyncio.run(told())["requests"] == "0"
