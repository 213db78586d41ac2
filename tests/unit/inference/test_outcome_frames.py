"""`outcome` frames, with which a client reports the outcomes of suggestions."""

from typing import Any

import pytest

from caret.contracts.usage import OutcomeEvent
from inference.gateway.protocol.connection import MAX_ACCEPTED, MAX_REMEMBERED
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.stream_client import open_editor
from tests.fakes.tenants import ACME, ADA


async def test_an_outcome_is_recorded_for_its_completion() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        await editor.says("outcome", "1", event="accepted", chars=2, after_ms=900)

    (outcome,) = editor.journal.outcomes
    assert outcome.request_id == editor.arrivals[0].request_id
    assert (outcome.tenant_id, outcome.user_id) == (ACME, ADA)
    assert (outcome.event, outcome.chars, outcome.after_ms) == (OutcomeEvent.ACCEPTED, 2, 900)


async def test_the_display_latency_is_recorded() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        await editor.says("outcome", "1", event="shown", after_ms=900, display_ms=137)

    (outcome,) = editor.journal.outcomes
    assert outcome.display_ms == 137


async def test_several_outcomes_are_separate_records() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        await editor.says("outcome", "1", event="shown")
        await editor.says("outcome", "1", event="accepted")

    assert len({outcome.outcome_id for outcome in editor.journal.outcomes}) == 2


async def test_the_text_of_an_outcome_is_passed_on_and_not_recorded() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        await editor.says("outcome", "1", event="accepted", chars=2, text="planted")

    (edit,) = editor.suggestion_edits
    assert (edit.request_id, edit.text) == (editor.arrivals[0].request_id, "planted")
    assert "planted" not in str(editor.journal.records)


async def test_an_outcome_before_the_end_is_rejected() -> None:
    async with open_editor(FakeEngine(chunks_of("b", stop=None), hangs=True)) as editor:
        await editor.says("complete", "1")
        await editor.says("outcome", "1", event="shown")

        assert editor.ends("1") == ["unknown_id"]
    assert editor.journal.records == []


async def test_an_outcome_of_an_unknown_completion_is_rejected() -> None:
    async with open_editor() as editor:
        await editor.says("outcome", "9", event="shown")

    assert editor.ends("9") == ["unknown_id"]
    assert editor.journal.records == []


@pytest.mark.parametrize(
    "fields",
    [
        {"chars": -1},
        {"after_ms": -1},
        {"chars": 2**31},
        {"lines": -1},
        {"edited_ratio": 0.1},  # only for the event `persisted`
        {"display_ms": -1},
        {"event": "accepted", "display_ms": 90},  # only for the event `shown`
        {"event": "persisted", "after_ms": 30_000},  # without `edited_ratio`
        {"event": "persisted", "after_ms": 30_000, "edited_ratio": 1.01},
        {"event": "persisted", "after_ms": 30_000, "edited_ratio": -0.01},
        {"event": "persisted", "after_ms": 13_000, "edited_ratio": 0.1},  # before the first span
        {"event": "persisted", "after_ms": 30_000, "edited_ratio": "half"},
    ],
)
async def test_an_outcome_with_invalid_fields_is_rejected(fields: dict[str, Any]) -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        await editor.says("outcome", "1", **{"event": "shown", **fields})

    assert editor.ends("1") == ["stop", "invalid_field"]
    assert editor.journal.records == []


async def test_the_number_of_remembered_completions_is_limited() -> None:
    async with open_editor() as editor:
        for number in range(MAX_REMEMBERED + 1):
            await editor.says("complete", str(number))
            await editor.waits_for_end(str(number))

        await editor.says("outcome", "0", event="shown")
        await editor.says("outcome", "1", event="shown")

    assert editor.ends("0") == ["stop", "unknown_id"]
    assert len(editor.journal.records) == 1


async def test_accepted_completions_are_remembered_longer() -> None:
    async with open_editor() as editor:
        for number in range(MAX_REMEMBERED + 2):
            await editor.says("complete", str(number))
            await editor.waits_for_end(str(number))
            if number == 0:
                await editor.says("outcome", "0", event="accepted")

        outcome_fields = {"after_ms": 1_800_000, "edited_ratio": 0.5}
        await editor.says("outcome", "0", event="persisted", **outcome_fields)
        await editor.says("outcome", "1", event="persisted", **outcome_fields)
        await editor.says("complete", "0")

    assert [outcome.span_s for outcome in editor.journal.outcomes] == [None, 1_800]
    assert editor.ends("1") == ["stop", "unknown_id"]
    assert editor.ends("0") == ["stop", "duplicate_id"]


async def test_the_number_of_remembered_accepted_completions_is_limited() -> None:
    async with open_editor() as editor:
        for number in range(MAX_ACCEPTED + 1):
            await editor.says("complete", str(number))
            await editor.waits_for_end(str(number))
            await editor.says("outcome", str(number), event="accepted")

        await editor.says("outcome", "0", event="shown")
        await editor.says("outcome", "1", event="shown")

    assert editor.ends("0") == ["stop", "unknown_id"]
    assert editor.ends("1") == ["stop"]


async def test_missing_counts_mean_the_whole_suggestion() -> None:
    async with open_editor(FakeEngine(chunks_of("first\n", "second"))) as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        await editor.says("outcome", "1", event="accepted")

    (outcome,) = editor.journal.outcomes
    assert (outcome.chars, outcome.lines) == (12, 2)


async def test_counts_are_limited_to_the_suggestion() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        await editor.says("outcome", "1", event="accepted", chars=9_000, lines=70)

    (outcome,) = editor.journal.outcomes
    assert (outcome.chars, outcome.lines) == (2, 1)


async def test_persistence_is_recorded_once_for_each_span() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        # A span of 15 s counts as passed after 13.5 s, because timers may be early.
        for after_ms in (14_900, 30_100, 100_000, 2_000_000):
            fields = {"event": "persisted", "after_ms": after_ms, "edited_ratio": 0.25}
            await editor.says("outcome", "1", **fields)

    spans = [(outcome.span_s, outcome.edited_ratio) for outcome in editor.journal.outcomes]
    assert spans == [(15, 0.25), (30, 0.25), (1_800, 0.25)]
    # The report after 100 s belongs to the same span as the report after 30 s.
    assert editor.ends("1") == ["stop", "duplicate_outcome"]


async def test_a_repeated_acceptance_is_recorded_once() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        await editor.says("outcome", "1", event="accepted")
        await editor.says("outcome", "1", event="accepted")

    assert editor.ends("1") == ["stop", "duplicate_outcome"]
    assert len(editor.journal.outcomes) == 1


async def test_an_outcome_for_another_connection_is_rejected() -> None:
    async with open_editor() as editor, open_editor() as other_editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        await other_editor.says("outcome", "1", event="accepted")

    assert other_editor.ends("1") == ["unknown_id"]
    assert (editor.journal.records, other_editor.journal.records) == ([], [])
