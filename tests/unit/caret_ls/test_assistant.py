"""The suggestions offered to the editor, with a gateway that a test controls."""

import asyncio

import pytest

from caret_ls.completion_provider import PREFETCH_AFTER_S, InlineRequest
from caret_ls.gateway_connection import RequestEnded
from caret_ls.in_flight_request import GRACE_S
from caret_ls.skip_rules import SkipReason
from caret_ls.status_board import ServerStatus
from caret_ls.text_document import Position
from caret_ls.workspace import SelectedCompletion
from tests.unit.caret_ls.provider_harness import URI, Desk, said


@pytest.fixture
async def desk() -> Desk:
    made = Desk()
    made.open("a = 1\nb = |\n")
    return made


async def test_what_the_gateway_says_is_offered_whole(desk: Desk) -> None:
    desk.gateway.ready.append(said("a ", "+ 1"))

    offer = await desk.asks()

    assert offer is not None
    assert (offer.text, offer.position, offer.replaces) == ("a + 1", Position(1, 4), 0)
    (frame,) = desk.gateway.asked
    assert (frame["prefix"], frame["suffix"]) == ("a = 1\nb = ", "\n")
    assert (frame["trigger"], frame["language"], frame["path"]) == ("automatic", "python", "a.py")
    assert desk.statuses == [ServerStatus.READY, ServerStatus.WORKING, ServerStatus.READY]
    assert desk.assistant.last_reason is None


async def test_before_anything_is_asked_that_is_the_reason(desk: Desk) -> None:
    assert desk.assistant.last_reason is SkipReason.NOT_REQUESTED


async def test_the_reason_is_the_newest_requests(desk: Desk) -> None:
    older = desk.asks()
    await desk.is_asked(1)
    other = "file:///nowhere/b.py"
    desk.open("# why |\n", uri=other)
    await desk.assistant.provide(other, InlineRequest(desk.at))
    desk.gateway.says("1", "a")

    assert await older is not None, "it arrived later, but was requested before"
    assert desk.assistant.last_reason is SkipReason.IN_COMMENT


async def test_what_the_editor_has_taken_back_was_a_newer_keystroke(desk: Desk) -> None:
    asked = desk.asks()
    await desk.is_asked(1)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)

    assert desk.assistant.last_reason is SkipReason.NEWER_KEYSTROKE


def chosen(text: str, *, typed: int, behind: int = 0) -> SelectedCompletion:
    """Return an entry of the editor's completion list, at the cursor of `desk`."""
    return SelectedCompletion(Position(1, 4 - typed), Position(1, 4 + behind), text)


async def test_a_chosen_word_is_gone_on_from(desk: Desk) -> None:
    desk.open("a = 1\nb =w|\n")
    desk.gateway.ready.append(said(" * 2"))

    offer = await desk.asks(chosen=chosen("width", typed=1))

    assert offer is not None
    assert (offer.text, offer.position) == ("idth * 2", Position(1, 4))
    assert desk.gateway.asked[0]["prefix"] == "a = 1\nb =width"
    assert [(told.event, told.chars) for told in desk.told] == [("shown", len(" * 2"))]


@pytest.mark.parametrize(
    "other",
    [chosen("height", typed=1), chosen("width", typed=1, behind=1), chosen("", typed=1)],
    ids=["fuzzy match", "text behind the cursor goes", "shorter"],
)
async def test_a_word_that_cannot_be_gone_on_from_ends_it(
    desk: Desk, other: SelectedCompletion
) -> None:
    desk.open("a = 1\nb =w|x\n")

    assert await desk.asks(chosen=other) is None
    assert desk.assistant.last_reason is SkipReason.COMPLETION_LIST_OPEN
    assert desk.gateway.asked == []


async def test_what_was_suggested_that_begins_with_the_word_is_offered_still(desk: Desk) -> None:
    desk.gateway.ready.append(said("width * 2"))
    await desk.asks()
    desk.type("w")

    offer = await desk.asks(chosen=SelectedCompletion(Position(1, 4), Position(1, 5), "width"))

    assert offer is not None
    assert offer.text == "idth * 2"
    assert len(desk.gateway.asked) == 1


async def test_typed_through_it_is_offered_again_without_a_request(desk: Desk) -> None:
    desk.gateway.ready.append(said("a + 1"))
    await desk.asks()
    desk.type("a ")

    offer = await desk.asks()

    assert offer is not None
    assert offer.text == "+ 1"
    assert len(desk.gateway.asked) == 1
    assert [outcome.event for outcome in desk.told] == ["shown"]


async def test_a_newer_keystroke_takes_the_older_request_back(desk: Desk) -> None:
    older = desk.asks()
    await desk.is_asked(1)
    desk.gateway.says("1", "a", finish=None)
    await asyncio.sleep(0.01)
    desk.type("x")
    newer = desk.asks()
    await desk.is_asked(2)
    desk.gateway.says("2", " + 1")

    assert await older is None
    offer = await newer
    assert offer is not None
    assert offer.text == " + 1"
    assert desk.gateway.taken_back == ["1"]


async def test_a_newer_keystroke_joins_a_request_that_it_agrees_with(desk: Desk) -> None:
    older = desk.asks()
    await desk.is_asked(1)
    desk.gateway.says("1", "fo", finish=None)
    await asyncio.sleep(0.01)
    desk.type("f")
    newer = desk.asks()
    await asyncio.sleep(2 * GRACE_S)
    desk.gateway.says("1", "o(a)")

    assert await older is None
    offer = await newer
    assert offer is not None
    assert offer.text == "oo(a)"
    assert len(desk.gateway.asked) == 1
    assert desk.gateway.taken_back == []


async def test_what_was_joined_and_says_something_else_is_asked_for_anew(desk: Desk) -> None:
    older = desk.asks()
    await desk.is_asked(1)
    desk.type("f")
    newer = desk.asks()
    await asyncio.sleep(0.01)
    desk.gateway.says("1", "bar")
    await desk.is_asked(2)
    desk.gateway.says("2", "oo")

    assert await older is None
    offer = await newer
    assert offer is not None
    assert offer.text == "oo"


async def test_what_the_editor_takes_back_is_taken_back_on_the_wire(desk: Desk) -> None:
    asked = desk.asks()
    await desk.is_asked(1)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    before = list(desk.gateway.taken_back)
    await asyncio.sleep(2 * GRACE_S)

    assert before == []
    assert desk.gateway.taken_back == ["1"]


async def test_taken_back_and_asked_anew_it_is_joined(desk: Desk) -> None:
    asked = desk.asks()
    await desk.is_asked(1)
    asked.cancel()
    again = desk.asks()
    await asyncio.sleep(2 * GRACE_S)
    desk.gateway.says("1", "a")

    assert await again is not None
    assert len(desk.gateway.asked) == 1


async def test_a_key_waits_for_the_next_one_before_it_asks(desk: Desk) -> None:
    desk.debouncer.on_keystroke(desk.clock.now_s)
    first = desk.asks()
    await asyncio.sleep(0.01)
    desk.type("c")
    second = desk.asks()
    await desk.is_asked(1)
    desk.gateway.says("1", " + 1")

    assert await first is None
    assert await second is not None
    assert [frame["prefix"] for frame in desk.gateway.asked] == ["a = 1\nb = c"]


async def test_a_key_pressed_for_it_asks_while_a_fast_typist_is_waited_for(desk: Desk) -> None:
    desk.debouncer.min_delay_ms = 60_000
    desk.debouncer.on_keystroke(desk.clock.now_s)
    desk.gateway.ready.append(said("c"))
    waiting = desk.asks()
    await asyncio.sleep(0.01)

    assert desk.gateway.asked == []
    async with asyncio.timeout(10):
        assert await desk.asks(is_invoked=True) is not None
    assert await waiting is None


async def test_nothing_is_asked_where_it_is_not_worth_it(desk: Desk) -> None:
    desk.open("# why |\n")

    assert await desk.asks() is None
    assert desk.gateway.asked == []
    assert desk.assistant.last_reason is SkipReason.IN_COMMENT


async def test_by_a_key_it_is_asked_there_too(desk: Desk) -> None:
    desk.open("# why |\n")
    desk.gateway.ready.append(said("not"))

    assert await desk.asks(is_invoked=True) is not None
    assert desk.gateway.asked[0]["trigger"] == "manual"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (said("shown?", finish="filtered"), SkipReason.NOTHING_TO_SUGGEST),
        (said(), SkipReason.NOTHING_TO_SUGGEST),
        (said(" \n"), SkipReason.NOTHING_TO_SUGGEST),
        (said(finish="shed"), SkipReason.OVERLOADED),
        (said(finish="budget"), SkipReason.OVER_BUDGET),
        (said("ab", finish="superseded"), SkipReason.NEWER_KEYSTROKE),
        ([RequestEnded("path_excluded")], SkipReason.EXCLUDED),
        ([RequestEnded("offline")], SkipReason.OFFLINE),
        ([RequestEnded("internal")], SkipReason.REFUSED),
        ([RequestEnded("rate_limited", retry_after_s=2.0)], SkipReason.OVERLOADED),
    ],
)
async def test_every_end_without_a_text_has_its_reason(
    desk: Desk, answer: list[dict[str, str] | RequestEnded], reason: SkipReason
) -> None:
    desk.gateway.ready.append(answer)

    assert await desk.asks() is None
    assert desk.assistant.last_reason is reason


async def test_where_nothing_came_it_is_not_asked_again(desk: Desk) -> None:
    desk.gateway.ready.append(said(finish="filtered"))
    await desk.asks()
    await desk.asks()

    assert len(desk.gateway.asked) == 1
    assert desk.assistant.last_reason is SkipReason.NOTHING_TO_SUGGEST


async def test_who_is_told_to_come_back_later_does(desk: Desk) -> None:
    desk.gateway.ready += [[RequestEnded("rate_limited", retry_after_s=2.0)], said("a")]
    await desk.asks()
    desk.clock.now_s += 1.9
    too_early = await desk.asks()
    desk.clock.now_s += 0.2

    assert too_early is None
    assert await desk.asks() is not None
    assert len(desk.gateway.asked) == 2


async def test_midnight_is_not_waited_for(desk: Desk) -> None:
    desk.gateway.ready += [[RequestEnded("budget_exceeded", retry_after_s=30_000.0)], said("a")]
    await desk.asks()
    await desk.asks()
    held = desk.assistant.last_reason
    desk.clock.now_s += 61

    assert held is SkipReason.OVER_BUDGET
    assert await desk.asks() is not None


async def test_who_presses_a_key_for_it_does_not_wait(desk: Desk) -> None:
    desk.gateway.ready += [said(finish="budget"), said("a")]
    await desk.asks()

    assert await desk.asks() is None
    assert await desk.asks(is_invoked=True) is not None
    assert desk.statuses[-1] is ServerStatus.READY


async def test_over_budget_is_a_status_until_it_is_over(desk: Desk) -> None:
    desk.gateway.ready += [said(finish="budget"), said("a")]
    await desk.asks()
    desk.clock.now_s += 61
    await desk.asks()

    seen = [status for status in desk.statuses if status is not ServerStatus.WORKING]
    assert seen == [ServerStatus.READY, ServerStatus.OVER_BUDGET, ServerStatus.READY]


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({"is_connected": False}, SkipReason.OFFLINE),
        ({"is_signed_out": True}, SkipReason.SIGNED_OUT),
        ({"is_paused": True}, SkipReason.PAUSED),
    ],
)
async def test_without_a_gateway_nothing_is_asked(
    desk: Desk, known: dict[str, bool], reason: SkipReason
) -> None:
    desk.board.set(**known)

    assert await desk.asks() is None
    assert desk.assistant.last_reason is reason
    assert desk.gateway.asked == []


async def test_a_language_that_the_gateway_does_not_know_is_left_out(desk: Desk) -> None:
    desk.open("a = |\n", language="klingon")
    desk.gateway.ready += [[RequestEnded("unknown_language")], said("b")]
    await desk.asks()

    assert await desk.asks() is not None
    assert [frame["language"] for frame in desk.gateway.asked] == ["klingon", ""]


async def test_a_file_that_is_closed_meanwhile_is_offered_nothing(desk: Desk) -> None:
    asked = desk.asks()
    await desk.is_asked(1)
    desk.assistant.cancel(URI)
    desk.files.close(URI)

    assert await asked is None
    assert desk.gateway.taken_back == ["1"]
    assert await desk.asks() is None
    assert desk.assistant.last_reason is SkipReason.FILE_CLOSED


async def test_a_file_that_has_changed_meanwhile_is_offered_nothing(desk: Desk) -> None:
    asked = desk.asks()
    await desk.is_asked(1)
    desk.type("x")
    desk.gateway.says("1", "a + 1")

    assert await asked is None
    assert desk.told == []


async def test_what_follows_is_asked_for_while_a_suggestion_stands() -> None:
    desk = Desk(prefetch=True)
    desk.open("b = |\n")
    desk.gateway.ready += [said("a"), said(" + 1")]
    await desk.asks()
    prefetch = await desk.is_asked(2)
    await asyncio.sleep(0.01)
    desk.type("a")

    offer = await desk.asks()

    assert (prefetch["trigger"], prefetch["prefix"]) == ("prefetch", "b = a")
    assert offer is not None
    assert offer.text == " + 1"
    assert len(desk.gateway.asked) == 2
    assert desk.statuses.count(ServerStatus.WORKING) == 1


async def test_who_types_on_gets_nothing_fetched_ahead() -> None:
    desk = Desk(prefetch=True)
    desk.open("b = |\n")
    desk.gateway.ready += [said("foo"), said("x")]
    await desk.asks()
    desk.type("y")
    await desk.asks()
    await asyncio.sleep(PREFETCH_AFTER_S / 2)

    assert [frame["trigger"] for frame in desk.gateway.asked] == ["automatic", "automatic"]
