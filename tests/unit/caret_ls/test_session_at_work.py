"""A whole session with a real WebSocket: its reports, over connections that come and go."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest

from caret_ls.completion_provider import InlineRequest
from caret_ls.gateway_connection import Address
from caret_ls.session import Session, TextChange
from caret_ls.settings import Settings
from caret_ls.status_board import ServerStatus
from caret_ls.text_document import Position
from tests.fakes.polling import until
from tests.unit.caret_ls.gateways import Gateway, gateway
from tests.unit.caret_ls.provider_harness import URI, TurnedClock

_HOUR_S = 3_600.0
soon = partial(until, timeout_s=30.0)  # a WebSocket handshake, on a busy machine


class FailingSession(Session):
    """Its upkeep raises while it is broken."""

    is_broken = False
    num_failed = 0

    def keep_up(self) -> None:
        if self.is_broken:
            self.num_failed += 1
            raise RuntimeError("broken")
        super().keep_up()


@dataclass
class Work:
    session: FailingSession
    clock: TurnedClock
    running: "asyncio.Task[None]"
    statuses: list[ServerStatus] = field(default_factory=list)

    def go_to(self, made: Gateway, key: str = "key") -> None:
        self.session.set_up(self.session.settings, Address(made.url, key))

    async def reaches(self, status: ServerStatus) -> None:
        await soon(lambda: self.session.board.status is status)

    async def takes_a_suggestion_of(self, made: Gateway) -> None:
        """Connect, and accept the suggestion `a + 1` at the end of the file, behind `b = `."""
        made.suggestion = "a + 1"
        self.go_to(made)
        await self.reaches(ServerStatus.READY)
        self.session.open(URI, "python", "a = 1\nb = ")
        end = Position(1, 4)
        offer = await self.session.assistant.provide(URI, InlineRequest(end, is_invoked=True))
        assert offer is not None
        self.session.change(URI, [TextChange(offer.text, end, end)])


@asynccontextmanager
async def at_work(*, share_accepted_text: bool = False) -> AsyncIterator[Work]:
    clock, statuses = TurnedClock(), list[ServerStatus]()
    settings = Settings(prefetch=False, share_accepted_text=share_accepted_text)
    session = FailingSession(settings, clock, statuses.append, upkeep_every_s=0.01)
    work = Work(session, clock, asyncio.create_task(session.run()), statuses)
    try:
        yield work
    finally:
        work.running.cancel()
        await asyncio.gather(work.running, return_exceptions=True)


async def test_outcomes_have_the_requests_own_id() -> None:
    async with gateway() as made, at_work() as work:
        await work.takes_a_suggestion_of(made)
        work.clock.now_s += 31
        await soon(lambda: made.told("persisted") != [])

    told = [frame for frame in made.heard if frame["type"] == "outcome"]
    assert [frame["event"] for frame in told] == ["shown", "accepted", "persisted"]
    assert {frame["request_id"] for frame in told} == {f"request-{told[0]['id']}"}


@pytest.mark.parametrize("share_accepted_text", [False, True])
async def test_the_text_that_a_suggestion_became_is_sent_by_opt_in_only(
    share_accepted_text: bool,
) -> None:
    async with gateway() as made, at_work(share_accepted_text=share_accepted_text) as work:
        await work.takes_a_suggestion_of(made)
        work.clock.now_s += 31
        await soon(lambda: made.told("persisted") != [])

    (persisted,) = made.told("persisted")
    assert persisted.get("text") == ("a + 1" if share_accepted_text else None)


async def test_after_an_hours_sleep_what_is_left_is_told_to_the_new_connection() -> None:
    async with gateway() as made, at_work() as work:
        await work.takes_a_suggestion_of(made)
        await soon(lambda: made.told("accepted") != [])
        work.clock.slept_s += _HOUR_S
        await soon(lambda: len(made.sockets) == 2 and len(made.told("accepted")) == 2)
        work.clock.now_s += 31
        await soon(lambda: made.told("persisted") != [])
        await work.reaches(ServerStatus.READY)
        offer = await work.session.assistant.provide(
            URI, InlineRequest(Position(1, 4), is_invoked=True)
        )

    (persisted,) = made.told("persisted")
    assert persisted["request_id"] == made.told("shown")[0]["request_id"]
    assert offer is not None, "suggestions must continue as before"
    assert ServerStatus.SIGNED_OUT not in work.statuses[1:]
    assert not work.running.done() or work.running.cancelled()


async def test_what_happens_without_a_connection_is_told_to_the_next() -> None:
    async with gateway() as made, at_work() as work:
        await work.takes_a_suggestion_of(made)
        await soon(lambda: made.told("accepted") != [])
        made.refusal = 503
        await made.sockets[-1].close(1012)
        await work.reaches(ServerStatus.OFFLINE)
        work.clock.now_s += 61
        await asyncio.sleep(0.05)
        assert made.told("persisted") == []
        made.refusal = None
        await soon(lambda: made.told("persisted") != [])

    assert len(made.told("accepted")) == 1, "an older outcome must not be reported twice"


async def test_another_gateway_hears_nothing_of_it() -> None:
    async with gateway() as made, gateway() as other, at_work() as work:
        await work.takes_a_suggestion_of(made)
        await soon(lambda: made.told("accepted") != [])
        work.go_to(other)
        await soon(lambda: len(other.sockets) == 1)
        await asyncio.sleep(0.05)

    assert [frame for frame in other.heard if frame["type"] == "outcome"] == []


async def test_with_another_key_it_is_told_still() -> None:
    async with gateway() as made, at_work() as work:
        await work.takes_a_suggestion_of(made)
        await soon(lambda: made.told("accepted") != [])
        work.go_to(made, key="the new one")
        await soon(lambda: len(made.told("accepted")) == 2)


async def test_upkeep_that_fails_does_not_end_the_session() -> None:
    async with gateway() as made, at_work() as work:
        await work.takes_a_suggestion_of(made)
        work.session.is_broken = True
        await soon(lambda: work.session.num_failed >= 3 or work.running.done())
        work.session.is_broken = False
        work.clock.now_s += 31
        await soon(lambda: made.told("persisted") != [] or work.running.done())

    assert len(made.told("persisted")) == 1
    assert len(made.sockets) == 1, "the connection must stay the same"
