"""Outcomes of a suggested edit: when it counts as shown, accepted or rejected."""

from caret_ls.next_edit.edit_outcomes import EditOutcomes
from caret_ls.outcome_tracker import EditorOutcome, EditorOutcomeEvent

URI = "file:///nowhere/a.py"
SHOWN = EditorOutcomeEvent.SHOWN
ACCEPTED = EditorOutcomeEvent.ACCEPTED
REJECTED = EditorOutcomeEvent.REJECTED


class Harness:
    """An edit that was offered to the editor, and the outcomes that were reported for it."""

    def __init__(self) -> None:
        self.reported: list[EditorOutcome] = []
        self.outcomes = EditOutcomes(self.reported.append)
        self.outcomes.offer(URI, "1", request_id="r1", now_s=0.0)

    @property
    def events(self) -> list[tuple[EditorOutcomeEvent, int]]:
        return [(outcome.event, outcome.after_ms) for outcome in self.reported]


def test_an_accepted_edit_is_also_reported_as_shown() -> None:
    harness = Harness()
    harness.outcomes.on_displayed("1", 1.0)

    harness.outcomes.on_accepted("1", 1.1)
    harness.outcomes.on_change(URI, 1.2)  # the edit itself

    assert harness.events == [(SHOWN, 100), (ACCEPTED, 100)]
    assert {(outcome.id, outcome.request_id) for outcome in harness.reported} == {("1", "r1")}


def test_only_the_shown_outcome_contains_the_display_latency() -> None:
    harness = Harness()
    harness.outcomes.offer(URI, "2", request_id="r2", now_s=1.3, sent_s=1.0)
    harness.outcomes.on_displayed("2", 1.4)

    harness.outcomes.on_accepted("2", 9.0)

    assert [(outcome.event, outcome.display_ms) for outcome in harness.reported] == [
        (SHOWN, 400),
        (ACCEPTED, None),
    ]


def test_an_edit_that_is_offered_without_a_request_has_no_display_latency() -> None:
    harness = Harness()
    harness.outcomes.on_displayed("1", 1.0)

    harness.outcomes.on_dismissed("1", 2.0)

    assert {outcome.display_ms for outcome in harness.reported} == {None}


def test_an_edit_that_is_accepted_before_it_was_displayed_has_no_display_latency() -> None:
    harness = Harness()
    harness.outcomes.offer(URI, "2", request_id="r2", now_s=1.3, sent_s=1.0)

    harness.outcomes.on_accepted("2", 9.0)

    assert harness.events == [(SHOWN, 0), (ACCEPTED, 0)]
    assert {outcome.display_ms for outcome in harness.reported} == {None}


def test_an_edit_that_was_seen_and_dismissed_is_rejected() -> None:
    harness = Harness()
    harness.outcomes.on_displayed("1", 1.0)

    harness.outcomes.on_dismissed("1", 1.25)

    assert harness.events == [(SHOWN, 250), (REJECTED, 250)]


def test_an_edit_that_was_not_seen_is_not_reported() -> None:
    harness = Harness()
    harness.outcomes.on_displayed("1", 1.0)
    harness.outcomes.on_dismissed("1", 1.24)  # visible for less than MIN_SHOWN_S (250 ms)
    harness.outcomes.offer(URI, "2", request_id="r2", now_s=2.0)

    harness.outcomes.on_change(URI, 9.0)  # the editor never displayed it

    assert harness.events == []


def test_a_change_of_the_file_rejects_the_edit() -> None:
    harness = Harness()
    harness.outcomes.on_displayed("1", 1.0)

    harness.outcomes.on_change("file:///nowhere/b.py", 2.0)  # another file: no effect
    harness.outcomes.on_change(URI, 3.0)
    harness.outcomes.on_dismissed("1", 3.0)  # too late: no effect

    assert harness.events == [(SHOWN, 2_000), (REJECTED, 2_000)]


def test_a_newer_edit_rejects_the_older_one() -> None:
    harness = Harness()
    harness.outcomes.on_displayed("1", 1.0)

    harness.outcomes.offer(URI, "2", request_id="r2", now_s=2.0)
    harness.outcomes.on_accepted("1", 2.0)  # too late: no effect

    assert harness.events == [(SHOWN, 1_000), (REJECTED, 1_000)]


def test_an_edit_that_stays_is_reported_once_as_shown() -> None:
    harness = Harness()
    harness.outcomes.on_displayed("1", 1.0)

    harness.outcomes.report_long_shown(5.0)  # visible for 4 s, less than MAX_SHOWN_S (5 s)
    harness.outcomes.report_long_shown(6.0)
    harness.outcomes.report_long_shown(11.0)
    harness.outcomes.on_accepted("1", 12.0)

    assert harness.events == [(SHOWN, 5_000), (ACCEPTED, 11_000)]


def test_an_unknown_edit_is_ignored() -> None:
    harness = Harness()

    harness.outcomes.on_displayed("7", 1.0)
    harness.outcomes.on_accepted("7", 2.0)
    harness.outcomes.on_dismissed("7", 2.0)

    assert harness.events == []
