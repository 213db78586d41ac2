"""A whole session with a real WebSocket: the outcomes that it reports, over several connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest

from caret_ls.completion_provider import InlineRequest
from caret_ls.gateway_connection import Address
from caret_ls.next_edit.next_edits import EditRequest, NextEdit
from caret_ls.outcome_queue import RESEND_WINDOW_S
from caret_ls.outcome_tracker import SPANS_S
from caret_ls.session import Session, TextChange
from caret_ls.settings import Settings
from caret_ls.status_board import ServerStatus
from caret_ls.text_document import Position
from tests.fakes.polling import wait_until
from tests.unit.caret_ls.fake_gateway import Gateway, gateway
from tests.unit.caret_ls.provider_harness import URI, ManualClock

_HOUR_S = 3_600.0
_FIRST_CHECK_S = SPANS_S[0] + 1  # from the acceptance to the first check of the accepted text
wait_for = partial(wait_until, timeout_s=30.0)  # for a WebSocket handshake on a busy machine


class FailingSession(Session):
    """A session whose upkeep fails while `is_broken` is set."""

    is_broken = False
    num_failed = 0

    def run_upkeep(self) -> None:
        if self.is_broken:
            self.num_failed += 1
            raise RuntimeError("broken")
        super().run_upkeep()


@dataclass
class RunningSession:
    """A session that runs in a task, with its clock and the statuses that it reported."""

    session: FailingSession
    clock: ManualClock
    task: "asyncio.Task[None]"
    statuses: list[ServerStatus] = field(default_factory=list)

    def connect_to(self, fake: Gateway, key: str = "key") -> None:
        self.session.set_up(self.session.settings, Address(fake.url, key))

    async def wait_for_status(self, status: ServerStatus) -> None:
        await wait_for(lambda: self.session.board.status is status)

    async def accept_suggestion(self, fake: Gateway) -> None:
        """Connect, and accept the suggestion `a + 1` at the end of the file, after `b = `."""
        fake.suggestion = "a + 1"
        self.connect_to(fake)
        await self.wait_for_status(ServerStatus.READY)
        self.session.open(URI, "python", "a = 1\nb = ")
        end = Position(1, 4)
        offer = await self.session.completions.provide(URI, InlineRequest(end, is_invoked=True))
        assert offer is not None
        self.session.change(URI, [TextChange(offer.text, end, end)])


@asynccontextmanager
async def running_session(*, share_accepted_text: bool = False) -> AsyncIterator[RunningSession]:
    clock, statuses = ManualClock(), list[ServerStatus]()
    settings = Settings(prefetch=False, share_accepted_text=share_accepted_text)
    session = FailingSession(settings, clock, statuses.append, upkeep_every_s=0.01)
    running = RunningSession(session, clock, asyncio.create_task(session.run()), statuses)
    try:
        yield running
    finally:
        running.task.cancel()
        await asyncio.gather(running.task, return_exceptions=True)


async def test_outcomes_contain_the_request_id() -> None:
    async with gateway() as fake, running_session() as running:
        await running.accept_suggestion(fake)
        running.clock.now_s += _FIRST_CHECK_S
        await wait_for(lambda: fake.outcomes("persisted") != [])

    outcomes = [frame for frame in fake.received if frame["type"] == "outcome"]
    assert [frame["event"] for frame in outcomes] == ["shown", "accepted", "persisted"]
    assert {frame["request_id"] for frame in outcomes} == {f"request-{outcomes[0]['id']}"}


@pytest.mark.parametrize("share_accepted_text", [False, True])
async def test_persisted_text_is_sent_only_with_opt_in(
    share_accepted_text: bool,
) -> None:
    async with (
        gateway() as fake,
        running_session(share_accepted_text=share_accepted_text) as running,
    ):
        await running.accept_suggestion(fake)
        running.clock.now_s += _FIRST_CHECK_S
        await wait_for(lambda: fake.outcomes("persisted") != [])

    (persisted,) = fake.outcomes("persisted")
    assert persisted.get("text") == ("a + 1" if share_accepted_text else None)


async def test_outcomes_after_the_machine_slept_go_to_the_new_connection() -> None:
    async with gateway() as fake, running_session() as running:
        await running.accept_suggestion(fake)
        await wait_for(lambda: fake.outcomes("accepted") != [])
        running.clock.slept_s += _HOUR_S
        # The new connection sends the recent outcomes again.
        await wait_for(lambda: len(fake.sockets) == 2 and len(fake.outcomes("accepted")) == 2)
        running.clock.now_s += _FIRST_CHECK_S
        await wait_for(lambda: fake.outcomes("persisted") != [])
        await running.wait_for_status(ServerStatus.READY)
        offer = await running.session.completions.provide(
            URI, InlineRequest(Position(1, 4), is_invoked=True)
        )

    (persisted,) = fake.outcomes("persisted")
    assert persisted["request_id"] == fake.outcomes("shown")[0]["request_id"]
    assert offer is not None, "suggestions must continue as before"
    assert ServerStatus.SIGNED_OUT not in running.statuses
    assert not running.task.done() or running.task.cancelled(), "the session must not have failed"


async def test_the_visible_part_stays_when_the_machine_sleeps_in_mid_stream() -> None:
    async with gateway() as fake, running_session() as running:
        session = running.session
        session.completions.can_grow = True  # the editor adds text to a visible suggestion
        running.connect_to(fake)
        await running.wait_for_status(ServerStatus.READY)
        session.open(URI, "python", "def f():")
        request = InlineRequest(Position(0, 8), is_invoked=True)
        offering = asyncio.create_task(session.completions.provide(URI, request))
        await wait_for(lambda: fake.received[-1:] != [] and fake.received[-1]["type"] == "complete")
        id = fake.received[-1]["id"]
        await fake.send(type="delta", id=id, text="\n    a = 1\n")
        first = await offering
        running.clock.slept_s += _HOUR_S
        await wait_for(lambda: len(fake.sockets) == 2)
        await running.wait_for_status(ServerStatus.READY)

        after_sleep = await session.completions.provide(URI, request)

    assert first is not None
    assert after_sleep is not None
    assert (first.id, first.text) == (after_sleep.id, after_sleep.text) == (id, "\n    a = 1")


async def test_outcomes_without_a_connection_go_to_the_next_one() -> None:
    async with gateway() as fake, running_session() as running:
        await running.accept_suggestion(fake)
        await wait_for(lambda: fake.outcomes("accepted") != [])
        fake.refusal = 503
        await fake.sockets[-1].close(1012)  # close code for a restart
        await running.wait_for_status(ServerStatus.OFFLINE)
        running.clock.now_s += RESEND_WINDOW_S + 1  # also later than the first check of the text
        await asyncio.sleep(0.05)  # several runs of the upkeep, which is due every 10 ms
        assert fake.outcomes("persisted") == []
        fake.refusal = None
        await wait_for(lambda: fake.outcomes("persisted") != [])

    assert len(fake.outcomes("accepted")) == 1, "the outcome `accepted` is too old to be sent again"


async def test_outcomes_are_not_sent_to_another_gateway() -> None:
    async with gateway() as fake, gateway() as other_gateway, running_session() as running:
        await running.accept_suggestion(fake)
        await wait_for(lambda: fake.outcomes("accepted") != [])
        running.connect_to(other_gateway)
        await wait_for(lambda: len(other_gateway.sockets) == 1)
        await asyncio.sleep(0.05)  # several runs of the upkeep, which is due every 10 ms

    assert [frame for frame in other_gateway.received if frame["type"] == "outcome"] == []


async def test_outcomes_are_sent_again_after_a_change_of_the_key() -> None:
    async with gateway() as fake, running_session() as running:
        await running.accept_suggestion(fake)
        await wait_for(lambda: fake.outcomes("accepted") != [])
        running.connect_to(fake, key="the new one")
        await wait_for(lambda: len(fake.outcomes("accepted")) == 2)


async def test_failing_upkeep_does_not_end_the_session() -> None:
    async with gateway() as fake, running_session() as running:
        await running.accept_suggestion(fake)
        running.session.is_broken = True
        await wait_for(lambda: running.session.num_failed >= 3 or running.task.done())
        running.session.is_broken = False
        running.clock.now_s += _FIRST_CHECK_S
        await wait_for(lambda: fake.outcomes("persisted") != [] or running.task.done())

    assert len(fake.outcomes("persisted")) == 1
    assert len(fake.sockets) == 1, "the connection must stay the same"


async def test_the_persistence_of_an_accepted_edit_is_reported() -> None:
    async with gateway() as fake, running_session() as running:
        fake.modes = ["edit"]
        fake.edit = {"start_line": 1, "end_line": 2, "text": "b = a + 1\n"}
        running.connect_to(fake)
        await running.wait_for_status(ServerStatus.READY)
        session = running.session
        session.open(URI, "python", "a = \nb = 2\n")
        session.change(URI, [TextChange("1", Position(0, 4), Position(0, 4))])
        await wait_for(lambda: "edit" in session.policies.get(repository="", now_s=0.0).modes)
        request = EditRequest(URI, Position(0, 5), is_follow_up=True)
        result = await session.next_edits.suggest(request)
        assert isinstance(result, NextEdit)
        session.next_edits.on_accepted(result.id)
        session.change(URI, [TextChange("b = a + 1\n", Position(1, 0), Position(2, 0))])
        session.change(URI, [TextChange("# new\n", Position(0, 0), Position(0, 0))])

        running.clock.now_s += _FIRST_CHECK_S
        await wait_for(lambda: bool(fake.outcomes("persisted")))

        (persisted,) = fake.outcomes("persisted")
        assert (persisted["chars"], persisted["edited_ratio"]) == (len("b = a + 1\n"), 0.0)
        assert persisted["request_id"] == f"request-{result.id}"
