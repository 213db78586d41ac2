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
class ShownFile:
    """A file with a suggestion at character 10, which is shown from second 100 on."""

    reported: list[EditorOutcome] = field(default_factory=list)
    text: str = "x" * 10 + "\n"

    def __post_init__(self) -> None:
        self.outcomes = OutcomeTracker(self.reported.append)
        self.outcomes.show(URI, ShownSuggestion("1", 10, TEXT), now_s=100.0)

    def edit(
        self, at: int, inserted: str, *, deleted: int = 0, now_s: float = 101.5
    ) -> EditorOutcomeEvent | None:
        self.text = self.text[:at] + inserted + self.text[at + deleted :]
        return self.outcomes.change(URI, TextEdit(at, deleted, inserted), now_s)

    def check_persistence(self, now_s: float) -> None:
        self.outcomes.check_persistence(lambda uri: self.text if uri == URI else None, now_s)

    @property
    def events(self) -> list[EditorOutcomeEvent]:
        return [outcome.event for outcome in self.reported]


@pytest.fixture
def file() -> ShownFile:
    return ShownFile()


def test_a_suggestion_is_reported_as_shown_with_its_size_and_duration_when_it_disappears(
    file: ShownFile,
) -> None:
    assert file.reported == []

    file.edit(10, "x", now_s=100.25)

    shown_outcome, _ = file.reported
    assert shown_outcome == EditorOutcome(
        "1", EditorOutcomeEvent.SHOWN, after_ms=250, chars=len(TEXT), lines=1
    )


def test_the_display_latency_ends_when_the_editor_has_drawn_the_text() -> None:
    reported: list[EditorOutcome] = []
    outcomes = OutcomeTracker(reported.append)
    outcomes.show(URI, ShownSuggestion("1", 10, TEXT, sent_s=99.9), now_s=100.0)

    outcomes.on_displayed(URI, 100.02)
    outcomes.on_displayed(URI, 100.5)  # drawn again, with more text
    outcomes.dismiss(URI, 101.0)

    assert [(outcome.event, outcome.display_ms) for outcome in reported] == [
        (EditorOutcomeEvent.SHOWN, 120),
        (EditorOutcomeEvent.REJECTED, None),
    ]


def test_without_a_message_of_the_editor_the_display_latency_ends_with_the_response() -> None:
    reported: list[EditorOutcome] = []
    outcomes = OutcomeTracker(reported.append)
    outcomes.show(URI, ShownSuggestion("1", 10, TEXT, sent_s=99.9), now_s=100.0)

    outcomes.dismiss(URI, 101.0)

    assert reported[0].display_ms == 100


def test_a_suggestion_that_the_user_did_not_wait_for_has_no_display_latency(
    file: ShownFile,
) -> None:
    file.edit(10, TEXT)

    # ShownFile's suggestion has no `sent_s`: it was there before the user needed it.
    assert file.reported[0].display_ms is None


def test_a_suggestion_that_was_hardly_visible_is_neither_shown_nor_rejected(
    file: ShownFile,
) -> None:
    assert file.edit(10, "x", now_s=100.24) is None  # MIN_SHOWN_S is 250 ms
    assert file.reported == []


def test_a_suggestion_that_is_accepted_at_once_is_also_reported_as_shown(file: ShownFile) -> None:
    file.edit(10, TEXT, now_s=100.1)

    assert file.events == [EditorOutcomeEvent.SHOWN, EditorOutcomeEvent.ACCEPTED]


def test_a_suggestion_that_stays_visible_is_reported_as_shown_once(file: ShownFile) -> None:
    for now_s in (104.9, 105.0, 110.0):  # MAX_SHOWN_S is five seconds
        file.outcomes.report_long_shown(now_s)
    file.edit(10, "x", now_s=120.0)

    assert [(outcome.event, outcome.after_ms) for outcome in file.reported] == [
        (EditorOutcomeEvent.SHOWN, 5_000),
        (EditorOutcomeEvent.REJECTED, 20_000),
    ]


@dataclass
class GrowingFile(ShownFile):
    """A file whose suggestion is so far the first line of a longer one."""

    def __post_init__(self) -> None:
        self.outcomes = OutcomeTracker(self.reported.append)
        self.outcomes.show(URI, ShownSuggestion("1", 10, TEXT, is_whole=False), now_s=100.0)

    def grow(self, added_text: str, *, is_whole: bool = True) -> None:
        self.outcomes.grow("1", TEXT + added_text, is_whole=is_whole, request_id="r", now_s=101.6)


def test_accepting_the_first_part_of_a_growing_suggestion_accepts_a_part() -> None:
    file = GrowingFile()

    assert file.edit(10, TEXT) is EditorOutcomeEvent.PARTIALLY_ACCEPTED
    file.outcomes.accept("1", 101.5)  # after the edit, editors also report the acceptance
    file.grow("\nb")
    assert file.edit(10 + len(TEXT), "\nb") is EditorOutcomeEvent.ACCEPTED


def test_accepting_the_text_on_the_screen_as_more_arrives_accepts_a_part() -> None:
    file = GrowingFile()

    file.grow("\nb")
    file.edit(10, TEXT)
    file.outcomes.accept("1", 101.6)

    assert file.events[1:] == [EditorOutcomeEvent.PARTIALLY_ACCEPTED]


def test_typing_other_text_rejects_the_whole_grown_suggestion() -> None:
    file = GrowingFile()

    file.grow("\nb", is_whole=False)
    file.edit(10, "x")

    assert [(outcome.event, outcome.chars, outcome.lines) for outcome in file.reported] == [
        (EditorOutcomeEvent.SHOWN, len(TEXT) + 2, 2),
        (EditorOutcomeEvent.REJECTED, None, None),
    ]


def test_an_accepted_first_part_that_does_not_grow_is_no_longer_tracked() -> None:
    file = GrowingFile()

    file.edit(10, TEXT)
    file.grow("")

    assert file.edit(10 + len(TEXT), "x") is None


def test_a_redrawn_suggestion_is_not_reported_again(file: ShownFile) -> None:
    file.edit(10, "r")

    assert not file.outcomes.show(URI, ShownSuggestion("1", 11, TEXT[1:]), now_s=101.0)
    file.edit(11, "x")
    assert file.events == [EditorOutcomeEvent.SHOWN, EditorOutcomeEvent.REJECTED]


def test_inserting_the_whole_text_accepts_the_suggestion(file: ShownFile) -> None:
    assert file.edit(10, TEXT) is EditorOutcomeEvent.ACCEPTED
    assert file.reported[-1] == EditorOutcome("1", EditorOutcomeEvent.ACCEPTED, after_ms=1_500)


def test_inserting_the_rest_after_typing_accepts_the_suggestion(file: ShownFile) -> None:
    for at, character in enumerate("ret", start=10):
        assert file.edit(at, character) is None

    assert file.edit(13, "urn self.width") is EditorOutcomeEvent.ACCEPTED


def test_inserting_a_word_accepts_a_part(file: ShownFile) -> None:
    assert file.edit(10, "return ") is EditorOutcomeEvent.PARTIALLY_ACCEPTED
    assert file.reported[-1] == EditorOutcome(
        "1",
        EditorOutcomeEvent.PARTIALLY_ACCEPTED,
        after_ms=1_500,
        chars=len("return "),
        lines=1,
    )
    assert file.edit(17, "self.width") is EditorOutcomeEvent.ACCEPTED


def test_text_of_the_editors_completion_list_is_not_part_of_the_suggestion(file: ShownFile) -> None:
    file.outcomes.show(URI, ShownSuggestion("2", 10, "width * 2", num_lead_chars=5), now_s=101.0)

    assert file.edit(10, "width") is None
    assert file.edit(15, " *") is EditorOutcomeEvent.PARTIALLY_ACCEPTED
    assert file.reported[-2] == EditorOutcome(
        "2", EditorOutcomeEvent.SHOWN, after_ms=500, chars=len(" * 2"), lines=1
    )
    assert file.reported[-1] == EditorOutcome(
        "2", EditorOutcomeEvent.PARTIALLY_ACCEPTED, after_ms=500, chars=len(" *"), lines=1
    )
    assert file.edit(17, " 2") is EditorOutcomeEvent.ACCEPTED


def test_text_of_a_list_item_selected_later_is_not_part_of_the_suggestion(file: ShownFile) -> None:
    file.edit(10, "r")
    file.outcomes.show(
        URI, ShownSuggestion("1", 11, TEXT[1:], num_lead_chars=len("eturn")), now_s=101.0
    )

    assert file.edit(11, "eturn") is None
    assert file.edit(16, " self") is EditorOutcomeEvent.PARTIALLY_ACCEPTED
    assert file.reported[-1].chars == len(" self")


def test_other_text_rejects_the_suggestion_with_its_time(file: ShownFile) -> None:
    assert file.edit(10, "x") is EditorOutcomeEvent.REJECTED
    assert file.reported[-1] == EditorOutcome("1", EditorOutcomeEvent.REJECTED, after_ms=1_500)
    assert file.edit(11, "y") is None


@pytest.mark.parametrize(
    ("at", "inserted", "deleted", "event"),
    [(5, "", 2, None), (10, "", 1, EditorOutcomeEvent.REJECTED), (3, "yy", 0, None)],
    ids=["deletion before", "deletion after", "insertion before"],
)
def test_a_deletion_after_the_suggestion_rejects_it_and_edits_before_it_do_not(
    file: ShownFile, at: int, inserted: str, deleted: int, event: EditorOutcomeEvent | None
) -> None:
    assert file.edit(at, inserted, deleted=deleted) is event


def test_the_suggestion_moves_with_edits_before_it(file: ShownFile) -> None:
    file.edit(0, "import os\n")

    assert file.edit(20, TEXT) is EditorOutcomeEvent.ACCEPTED


def test_a_fully_typed_suggestion_is_neither_accepted_nor_rejected(file: ShownFile) -> None:
    for at, character in enumerate(TEXT, start=10):
        file.edit(at, character)
    file.edit(10 + len(TEXT), "x")

    assert file.events == [EditorOutcomeEvent.SHOWN]


def test_a_partially_accepted_suggestion_is_not_rejected(file: ShownFile) -> None:
    file.edit(10, "return ")
    file.edit(17, "x")

    assert file.events == [EditorOutcomeEvent.SHOWN, EditorOutcomeEvent.PARTIALLY_ACCEPTED]


def test_a_bracket_closed_by_the_editor_counts_as_typed() -> None:
    reported: list[EditorOutcome] = []
    outcomes = OutcomeTracker(reported.append)
    outcomes.show(URI, ShownSuggestion("1", 0, "(a)"), now_s=0.0)

    typed = TextEdit(0, deleted=0, inserted="()")
    accepted = TextEdit(1, deleted=1, inserted="a)")  # replaces the bracket that the editor added
    assert outcomes.change(URI, typed, 1.0) is None
    assert outcomes.change(URI, accepted, 1.0) is EditorOutcomeEvent.ACCEPTED


def test_the_next_suggestion_rejects_the_previous_one(file: ShownFile) -> None:
    file.outcomes.show(URI, ShownSuggestion("2", 10, "other"), now_s=102.0)

    assert file.reported[1] == EditorOutcome("1", EditorOutcomeEvent.REJECTED, after_ms=2_000)


def test_a_suggestion_shown_again_after_its_rejection_is_not_reported_again(
    file: ShownFile,
) -> None:
    file.edit(10, "x")
    file.edit(10, "", deleted=1)
    file.outcomes.show(URI, ShownSuggestion("1", 10, TEXT), now_s=103.0)
    file.edit(10, "y")
    file.outcomes.show(URI, ShownSuggestion("1", 10, TEXT), now_s=104.0)

    assert file.events == [EditorOutcomeEvent.SHOWN, EditorOutcomeEvent.REJECTED]


def test_a_repeated_or_unknown_acceptance_is_ignored(file: ShownFile) -> None:
    file.outcomes.accept("1", 101.0)
    file.outcomes.accept("1", 102.0)
    file.outcomes.accept("9", 102.0)

    assert file.events == [EditorOutcomeEvent.SHOWN, EditorOutcomeEvent.ACCEPTED]


def test_persistence_is_checked_five_times(file: ShownFile) -> None:
    file.edit(10, TEXT, now_s=200.0)
    for second in range(200, 2_100, 5):
        file.check_persistence(float(second))

    persisted = [
        outcome for outcome in file.reported if outcome.event is EditorOutcomeEvent.PERSISTED
    ]
    assert [outcome.after_ms for outcome in persisted] == [span_s * 1_000 for span_s in SPANS_S]
    assert len(SPANS_S) == 5
    for outcome in persisted:
        assert (outcome.edited_ratio, outcome.chars, outcome.text) == (0.0, len(TEXT), TEXT)


@pytest.mark.parametrize(
    ("at", "inserted", "deleted", "share", "remaining_text"),
    [  # the accepted text has 17 characters, from 10 to 27
        pytest.param(17, "", 5, 5 / 17, "return width", id="deletion inside"),
        pytest.param(13, "!", 0, 1 / 17, "ret!urn self.width", id="insertion inside"),
        pytest.param(0, "more\n", 0, 0.0, TEXT, id="insertion before"),
        pytest.param(27, "!", 0, 0.0, TEXT, id="insertion at the end"),
        pytest.param(8, "", 5, 3 / 17, "urn self.width", id="deletion across the start"),
        pytest.param(25, "", 3, 2 / 17, "return self.wid", id="deletion across the end"),
        pytest.param(10, "", 17, 1.0, "", id="deletion of the text"),
        pytest.param(0, "", 28, 1.0, "", id="deletion of the whole file"),
    ],
)
def test_a_persisted_outcome_has_the_edited_ratio_and_the_remaining_text(
    file: ShownFile, at: int, inserted: str, deleted: int, share: float, remaining_text: str
) -> None:
    file.edit(10, TEXT, now_s=200.0)
    file.edit(at, inserted, deleted=deleted)
    file.check_persistence(230.0)

    assert file.reported[-1].edited_ratio == pytest.approx(share, abs=1e-4)
    assert file.reported[-1].text == remaining_text


def test_checks_missed_while_the_machine_slept_become_one(file: ShownFile) -> None:
    file.edit(10, TEXT, now_s=200.0)
    file.check_persistence(3_800.0)
    file.check_persistence(3_900.0)

    _shown_outcome, _accepted_outcome, persisted_outcome = file.reported
    assert persisted_outcome.after_ms == 3_600_000


def test_persistence_is_not_checked_after_the_file_is_closed(file: ShownFile) -> None:
    file.edit(10, TEXT, now_s=200.0)
    file.outcomes.close(URI, 201.0)
    file.check_persistence(300.0)

    assert file.events == [EditorOutcomeEvent.SHOWN, EditorOutcomeEvent.ACCEPTED]


def test_closing_a_file_rejects_the_shown_suggestion(file: ShownFile) -> None:
    file.outcomes.close(URI, 105.0)

    assert file.reported[-1] == EditorOutcome("1", EditorOutcomeEvent.REJECTED, after_ms=5_000)
