"""Suggestions while an item of the editor's completion list is selected."""

import pytest

from caret_ls.skip_rules import SkipReason
from caret_ls.text_document import Position
from caret_ls.workspace import SelectedCompletion
from tests.unit.caret_ls.provider_harness import URI, Harness, response_frames


@pytest.fixture
async def harness() -> Harness:
    harness = Harness()
    harness.open("a = 1\nb = |\n")
    return harness


def selected_item(text: str, *, num_typed: int, num_replaced: int = 0) -> SelectedCompletion:
    """Return the selected item of the editor's completion list; the cursor is at column 4.

    The item replaces `num_typed` characters before the cursor and `num_replaced` after it.
    """
    return SelectedCompletion(Position(1, 4 - num_typed), Position(1, 4 + num_replaced), text)


async def test_a_suggestion_continues_the_selected_list_item(harness: Harness) -> None:
    harness.open("a = 1\nb =w|\n")
    harness.gateway.ready.append(response_frames(" * 2"))

    offer = await harness.request_suggestion(
        selected_completion=selected_item("width", num_typed=1)
    )

    assert offer is not None
    assert (offer.text, offer.position) == ("idth * 2", Position(1, 4))
    assert harness.gateway.requests[0]["prefix"] == "a = 1\nb =width"
    # When the file is closed, a suggestion that was visible for 1 s is reported as shown. Only the
    # model's text is counted, not the rest of the list item ("idth").
    harness.outcomes.close(URI, harness.clock.now_s + 1)
    assert (harness.reported[0].event, harness.reported[0].chars) == ("shown", len(" * 2"))


@pytest.mark.parametrize(
    "selected_completion",
    [
        selected_item("height", num_typed=1),
        selected_item("width", num_typed=1, num_replaced=1),
        selected_item("", num_typed=1),
    ],
    ids=["fuzzy match", "text after the cursor replaced", "shorter than the typed text"],
)
async def test_a_list_item_that_cannot_be_continued_gets_no_suggestion(
    harness: Harness, selected_completion: SelectedCompletion
) -> None:
    harness.open("a = 1\nb =w|x\n")

    assert await harness.request_suggestion(selected_completion=selected_completion) is None
    assert harness.completions.last_reason is SkipReason.COMPLETION_LIST_OPEN
    assert harness.gateway.requests == []


async def test_a_cached_suggestion_that_begins_with_the_list_item_is_offered(
    harness: Harness,
) -> None:
    harness.gateway.ready.append(response_frames("width * 2"))
    await harness.request_suggestion()
    harness.type("w")

    offer = await harness.request_suggestion(
        selected_completion=SelectedCompletion(Position(1, 4), Position(1, 5), "width")
    )

    assert offer is not None
    assert offer.text == "idth * 2"
    assert len(harness.gateway.requests) == 1
