"""Alternatives to a suggestion: requested on the second key press, and found in an edit."""

from dataclasses import replace
from itertools import count

import pytest

from caret_ls.alternatives import Alternatives
from caret_ls.completion_provider import InlineItem
from caret_ls.frames import RequestContext
from caret_ls.gateway_connection import RequestEnded
from caret_ls.text_document import Position, TextEdit
from caret_ls.workspace import OpenFiles
from tests.unit.caret_ls.provider_harness import URI, FakeGateway, response_frames

ITEM = InlineItem("s-1", "self.a", Position(0, 4), replaces=0, mode="block")


class Desk:
    def __init__(self) -> None:
        self.gateway = FakeGateway()
        files = OpenFiles(lambda _: None)
        files.open(URI, "python", "x = ")
        numbers = count(1)
        self.alternatives = Alternatives(
            files,
            self.gateway,
            build_request_context=lambda _: RequestContext(),
            new_id=lambda: f"a-{next(numbers)}",
        )

    async def invoke(self, item: InlineItem = ITEM, *, is_invoked: bool = True) -> list[str]:
        alternatives = await self.alternatives.find(URI, item, is_invoked=is_invoked)
        return [alternative.text for alternative in alternatives]


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.gateway.ready += [response_frames("self.b"), response_frames("self.c\n")]
    return desk


async def test_the_second_key_press_requests_alternatives(desk: Desk) -> None:
    edited_item = replace(ITEM, mode="inline")
    first, second, third = await desk.invoke(), await desk.invoke(edited_item), await desk.invoke()

    assert (first, second, third) == ([], ["self.b", "self.c"], ["self.b", "self.c"])
    requests = [(frame["alternative"], frame["mode"]) for frame in desk.gateway.requests]
    assert requests == [(1, "block"), (2, "block")]


async def test_an_automatic_request_brings_no_alternatives(desk: Desk) -> None:
    await desk.invoke(is_invoked=False)

    assert await desk.invoke(is_invoked=False) == []
    assert desk.gateway.requests == []


async def test_the_editors_own_request_for_a_grown_suggestion_brings_none(desk: Desk) -> None:
    await desk.invoke()
    desk.alternatives.on_grown(URI)

    assert await desk.invoke() == []
    assert await desk.invoke() == ["self.b", "self.c"]


async def test_another_suggestion_has_alternatives_of_its_own(desk: Desk) -> None:
    await desk.invoke()
    other_item = InlineItem("s-2", "y", Position(0, 4), replaces=0)

    assert await desk.invoke(other_item) == []


async def test_equal_and_failed_alternatives_are_left_out() -> None:
    desk = Desk()
    desk.gateway.ready += [response_frames("self.a"), [RequestEnded("offline")]]
    await desk.invoke()

    assert await desk.invoke() == []


async def test_an_inserted_alternative_is_recognised(desk: Desk) -> None:
    await desk.invoke()
    await desk.invoke()

    inserted = desk.alternatives.find_inserted(URI, TextEdit(4, 0, "self.b"))

    assert inserted is not None
    assert (inserted.id, inserted.at, inserted.text) == ("a-1", 4, "self.b")
    assert desk.alternatives.find_inserted(URI, TextEdit(4, 0, "self.a")) is None
