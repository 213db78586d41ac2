"""Outcomes of suggestions, derived from the changes of their file."""

from dataclasses import dataclass, field

import pytest

from caret_ls.outcome_tracker import (
    SPANS_S,
    EditorOutcome,
    EditorOutcomeEvent,
    OutcomeTracker,
    ShownSuggestion,
)
from caret_ls.text_document import TextEdit

URI = "file:///shop/a.py"
TEXT = "return self.width"


@dataclass
class Desk:
    """A file with a suggestion at character 10, shown since second 100."""

    told: list[EditorOutcome] = field(default_factory=list)
    text: str = "x" * 10 + "\n"

    def __post_init__(self) -> None:
        self.outcomes = OutcomeTracker(self.told.append)
        self.outcomes.show(URI, ShownSuggestion("1", 10, TEXT), now_s=100.0)

    def edit(
        self, at: int, inserted: str, *, deleted: int = 0, now_s: float = 101.5
    ) -> EditorOutcomeEvent | None:
        self.text = self.text[:at] + inserted + self.text[at + deleted :]
        return self.outcomes.change(URI, TextEdit(at, deleted, inserted), now_s)

    def look(self, now_s: float) -> None:
        self.outcomes.check_persistence(lambda uri: self.text if uri == URI else None, now_s)

    @property
    def events(self) -> list[EditorOutcomeEvent]:
        return [outcome.event for outcome in self.told]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_it_is_shown_with_its_size(desk: Desk) -> None:
    assert desk.told == [EditorOutcome("1", EditorOutcomeEvent.SHOWN, 0, len(TEXT), 1)]


def test_shown_again_at_a_redraw_it_is_the_same(desk: Desk) -> None:
    desk.edit(10, "r")

    assert not desk.outcomes.show(URI, ShownSuggestion("1", 11, TEXT[1:]), now_s=101.0)
    assert desk.events == [EditorOutcomeEvent.SHOWN]


def test_all_of_it_put_in_at_once_was_taken(desk: Desk) -> None:
    assert desk.edit(10, TEXT) is EditorOutcomeEvent.ACCEPTED
    assert desk.told[-1] == EditorOutcome("1", EditorOutcomeEvent.ACCEPTED, 1_500)


def test_the_rest_put_in_at_once_was_taken(desk: Desk) -> None:
    for at, character in enumerate("ret", start=10):
        assert desk.edit(at, character) is None

    assert desk.edit(13, "urn self.width") is EditorOutcomeEvent.ACCEPTED


def test_a_word_of_it_is_a_part_and_the_rest_still_stands(desk: Desk) -> None:
    assert desk.edit(10, "return ") is EditorOutcomeEvent.PARTIALLY_ACCEPTED
    assert desk.told[-1] == EditorOutcome("1", EditorOutcomeEvent.PARTIALLY_ACCEPTED, 1_500, 7, 1)
    assert desk.edit(17, "self.width") is EditorOutcomeEvent.ACCEPTED


def test_what_the_editors_own_word_brings_is_no_part_of_it(desk: Desk) -> None:
    desk.outcomes.show(URI, ShownSuggestion("2", 10, "width * 2", num_led=5), now_s=101.0)

    assert desk.told[-1] == EditorOutcome("2", EditorOutcomeEvent.SHOWN, 0, len(" * 2"), 1)
    assert desk.edit(10, "width") is None
    assert desk.edit(15, " *") is EditorOutcomeEvent.PARTIALLY_ACCEPTED
    assert desk.told[-1] == EditorOutcome("2", EditorOutcomeEvent.PARTIALLY_ACCEPTED, 500, 2, 1)
    assert desk.edit(17, " 2") is EditorOutcomeEvent.ACCEPTED


def test_a_word_that_was_chosen_since_is_no_part_of_it_either(desk: Desk) -> None:
    desk.edit(10, "r")
    desk.outcomes.show(URI, ShownSuggestion("1", 11, TEXT[1:], num_led=len("eturn")), now_s=101.0)

    assert desk.edit(11, "eturn") is None
    assert desk.edit(16, " self") is EditorOutcomeEvent.PARTIALLY_ACCEPTED
    assert desk.told[-1].chars == len(" self")


def test_something_else_passes_it_by_with_the_time_it_stood(desk: Desk) -> None:
    assert desk.edit(10, "x") is EditorOutcomeEvent.REJECTED
    assert desk.told[-1] == EditorOutcome("1", EditorOutcomeEvent.REJECTED, 1_500)
    assert desk.edit(11, "y") is None


@pytest.mark.parametrize(
    "edit", [(5, "", 2), (10, "", 1), (3, "yy", 0)], ids=["deleted above", "behind", "put in above"]
)
def test_only_what_is_at_the_suggestion_is_about_it(desk: Desk, edit: tuple[int, str, int]) -> None:
    at, inserted, deleted = edit
    event = desk.edit(at, inserted, deleted=deleted)

    assert event is (EditorOutcomeEvent.REJECTED if at == 10 else None)


def test_after_a_change_above_it_is_taken_where_it_is_now(desk: Desk) -> None:
    desk.edit(0, "import os\n")

    assert desk.edit(20, TEXT) is EditorOutcomeEvent.ACCEPTED


def test_typed_to_its_end_it_was_neither_taken_nor_passed_by(desk: Desk) -> None:
    for at, character in enumerate(TEXT, start=10):
        desk.edit(at, character)
    desk.edit(10 + len(TEXT), "x")

    assert desk.events == [EditorOutcomeEvent.SHOWN]


def test_of_what_was_taken_in_part_the_rest_is_not_passed_by(desk: Desk) -> None:
    desk.edit(10, "return ")
    desk.edit(17, "x")

    assert desk.events == [EditorOutcomeEvent.SHOWN, EditorOutcomeEvent.PARTIALLY_ACCEPTED]


def test_a_bracket_that_the_editor_closes_is_typed_through() -> None:
    told: list[EditorOutcome] = []
    outcomes = OutcomeTracker(told.append)
    outcomes.show(URI, ShownSuggestion("1", 0, "(a)"), now_s=0.0)

    assert outcomes.change(URI, TextEdit(0, 0, "()"), 1.0) is None
    assert outcomes.change(URI, TextEdit(1, 1, "a)"), 1.0) is EditorOutcomeEvent.ACCEPTED


def test_the_next_suggestion_passes_by_the_one_before(desk: Desk) -> None:
    desk.outcomes.show(URI, ShownSuggestion("2", 10, "other"), now_s=102.0)

    assert desk.told[1] == EditorOutcome("1", EditorOutcomeEvent.REJECTED, 2_000)


def test_shown_once_more_after_a_detour_it_is_told_once(desk: Desk) -> None:
    desk.edit(10, "x")
    desk.edit(10, "", deleted=1)
    desk.outcomes.show(URI, ShownSuggestion("1", 10, TEXT), now_s=103.0)
    desk.edit(10, "y")
    desk.outcomes.show(URI, ShownSuggestion("1", 10, TEXT), now_s=104.0)

    assert desk.events == [EditorOutcomeEvent.SHOWN, EditorOutcomeEvent.REJECTED]


def test_the_editor_may_say_that_it_was_taken(desk: Desk) -> None:
    desk.outcomes.accept("1", 101.0)
    desk.outcomes.accept("1", 102.0)
    desk.outcomes.accept("9", 102.0)

    assert desk.events == [EditorOutcomeEvent.SHOWN, EditorOutcomeEvent.ACCEPTED]


def test_what_is_left_is_looked_at_five_times(desk: Desk) -> None:
    desk.edit(10, TEXT, now_s=200.0)
    for second in range(200, 2_100, 5):
        desk.look(float(second))

    kept = [outcome for outcome in desk.told if outcome.event is EditorOutcomeEvent.PERSISTED]
    assert [outcome.after_ms for outcome in kept] == [span * 1_000 for span in SPANS_S]
    assert {(outcome.edited_ratio, outcome.chars, outcome.text) for outcome in kept} == {
        (0.0, len(TEXT), TEXT)
    }


@pytest.mark.parametrize(
    ("edit", "share", "now"),
    [
        ((17, "", 5), 5 / 17, "return width"),
        ((13, "!", 0), 1 / 17, "ret!urn self.width"),
        ((0, "more\n", 0), 0.0, TEXT),
        ((27, "!", 0), 0.0, TEXT),
        ((8, "", 5), 3 / 17, "urn self.width"),
        ((25, "", 3), 2 / 17, "return self.wid"),
        ((10, "", 17), 1.0, ""),
        ((0, "", 28), 1.0, ""),
    ],
)
def test_changes_are_weighed_by_edit_distance(
    desk: Desk, edit: tuple[int, str, int], share: float, now: str
) -> None:
    desk.edit(10, TEXT, now_s=200.0)
    at, inserted, deleted = edit
    desk.edit(at, inserted, deleted=deleted)
    desk.look(230.0)

    assert desk.told[-1].edited_ratio == pytest.approx(share, abs=1e-4)
    assert desk.told[-1].text == now


def test_after_an_hour_s_sleep_the_moments_that_passed_are_one(desk: Desk) -> None:
    desk.edit(10, TEXT, now_s=200.0)
    desk.look(3_800.0)
    desk.look(3_900.0)

    assert [outcome.after_ms for outcome in desk.told[2:]] == [3_600_000]


def test_of_a_closed_file_nothing_more_is_known(desk: Desk) -> None:
    desk.edit(10, TEXT, now_s=200.0)
    desk.outcomes.close(URI, 201.0)
    desk.look(300.0)

    assert desk.events == [EditorOutcomeEvent.SHOWN, EditorOutcomeEvent.ACCEPTED]


def test_closing_a_file_passes_by_what_stands_there(desk: Desk) -> None:
    desk.outcomes.close(URI, 105.0)

    assert desk.told[-1] == EditorOutcome("1", EditorOutcomeEvent.REJECTED, 5_000)
