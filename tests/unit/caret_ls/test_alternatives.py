"""Alternatives to a suggestion.

The second press of the shortcut requests them. When the editor inserts one, it is recognised.
"""

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


class Harness:
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
        alternatives = await self.alternatives.get_or_request(URI, item, is_invoked=is_invoked)
        return [alternative.text for alternative in alternatives]


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    # An alternative loses the whitespace at its end.
    harness.gateway.ready += [response_frames("self.b"), response_frames("self.c\n")]
    return harness


async def test_the_second_press_of_the_shortcut_requests_alternatives(harness: Harness) -> None:
    same_item_in_other_mode = replace(ITEM, mode="inline")
    first, second, third = (
        await harness.invoke(),
        await harness.invoke(same_item_in_other_mode),
        await harness.invoke(),
    )

    assert (first, second, third) == ([], ["self.b", "self.c"], ["self.b", "self.c"])
    requests = [(frame["alternative"], frame["mode"]) for frame in harness.gateway.requests]
    assert requests == [(1, "block"), (2, "block")]


async def test_an_automatic_request_brings_no_alternatives(harness: Harness) -> None:
    await harness.invoke(is_invoked=False)

    assert await harness.invoke(is_invoked=False) == []
    assert harness.gateway.requests == []


async def test_the_request_of_an_editor_that_redraws_a_grown_suggestion_gets_no_alternatives(
    harness: Harness,
) -> None:
    await harness.invoke()
    harness.alternatives.on_grown(URI)

    assert await harness.invoke() == []
    assert await harness.invoke() == ["self.b", "self.c"]


async def test_another_suggestion_has_alternatives_of_its_own(harness: Harness) -> None:
    await harness.invoke()
    other_item = InlineItem("s-2", "y", Position(0, 4), replaces=0)

    assert await harness.invoke(other_item) == []


async def test_equal_and_failed_alternatives_are_left_out() -> None:
    harness = Harness()
    harness.gateway.ready += [response_frames("self.a"), [RequestEnded("offline")]]
    await harness.invoke()

    assert await harness.invoke() == []


async def test_an_inserted_alternative_is_recognised(harness: Harness) -> None:
    await harness.invoke()
    await harness.invoke()

    # The original suggestion is no alternative.
    original = harness.alternatives.find_inserted(URI, TextEdit(4, deleted=0, inserted="self.a"))
    inserted = harness.alternatives.find_inserted(URI, TextEdit(4, deleted=0, inserted="self.b"))

    assert inserted is not None
    assert (inserted.id, inserted.at, inserted.text) == ("a-1", 4, "self.b")
    assert original is None
