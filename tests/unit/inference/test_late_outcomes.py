"""Late outcomes: outcomes of requests that were made on another connection."""

import json
import uuid
from typing import Any

import pytest

from caret.contracts.usage import OutcomeEvent
from caret.foundation.ids import UserId, new_request_id
from inference.errors import TooManyRequests, UnauthenticatedRequest
from inference.gateway.protocol.frames import ErrorFrame
from inference.gateway.protocol.late_outcomes import (
    MAX_AGE_MS,
    MAX_AHEAD_MS,
    MAX_AT_ONCE,
    MAX_OF_TENANT_AT_ONCE,
    LateOutcomeRecorder,
)
from inference.gateway.protocol.outcome_reports import OutcomeReport
from tests.fakes.clock import FakeClock
from tests.fakes.journal import FakeJournal
from tests.fakes.stream_client import Editor, open_editor
from tests.fakes.tenants import ACME, ADA, ALICE, GLOBEX, make_principal

# Persistence is measured at several spans after the acceptance (SPANS_S). This report counts for
# the span of 30 s, the longest span that has passed.
PERSISTED = {"event": "persisted", "after_ms": 31_000, "edited_ratio": 0.1}


def make_request_id(editor: Editor, *, age_ms: int = 0) -> str:
    return new_request_id(now_ms=editor.clock.now_ms() - age_ms)


async def report(editor: Editor, **fields: Any) -> None:
    await editor.connection.on_frame(json.dumps({"type": "outcome", "event": "accepted"} | fields))


async def test_an_outcome_of_another_connection_is_recorded_by_request_id() -> None:
    async with open_editor() as editor:
        request_id = make_request_id(editor)
        await report(editor, request_id=request_id, id="of-the-other", chars=9_000, **PERSISTED)

    (late,) = editor.journal.late_outcomes
    assert (late.request_id, late.tenant_id, late.user_id) == (request_id, ACME, ADA)
    assert (late.event, late.span_s, late.chars, late.lines) == ("persisted", 30, 9_000, None)
    assert (editor.journal.outcomes, editor.frames) == ([], [])


async def test_a_completion_of_the_same_connection_may_be_named_by_both_ids() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        own_request_id = editor.arrivals[0].request_id
        await report(editor, id="1", request_id=own_request_id, chars=9_000)

    (outcome,) = editor.journal.outcomes
    # The gateway knows this completion, so it limits the reported characters to those generated.
    assert (outcome.request_id, outcome.chars) == (own_request_id, 2)
    assert editor.journal.late_outcomes == []


async def test_the_request_id_decides_if_the_frame_id_names_another_completion() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        await report(editor, id="1", request_id=make_request_id(editor))

    assert len(editor.journal.late_outcomes) == 1
    assert editor.journal.outcomes == []


async def test_the_text_of_a_late_outcome_is_dropped() -> None:
    async with open_editor() as editor:
        await report(editor, request_id=make_request_id(editor), text="planted")

    assert editor.suggestion_edits == []
    assert "planted" not in str(editor.journal.records)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "0" * 100_000,
        "01934F3C-0000-7000-8000-000000000000",
        "01934f3c000070008000000000000000",
        "01934f3c-0000-4000-8000-000000000000",
        "{01934f3c-0000-7000-8000-000000000000}",
    ],
)
async def test_an_invalid_request_id_is_rejected(text: str) -> None:
    async with open_editor() as editor:
        await report(editor, id="1", request_id=text)

    assert editor.ends("1") == ["invalid_field"]
    assert editor.journal.records == []


@pytest.mark.parametrize(
    ("age_ms", "ends"),
    [
        (MAX_AGE_MS, []),
        (MAX_AGE_MS + 1, ["unknown_id"]),
        (-MAX_AHEAD_MS, []),  # made by a gateway whose clock is ahead
        (-MAX_AHEAD_MS - 1, ["unknown_id"]),
    ],
)
async def test_outcomes_are_accepted_for_a_day(age_ms: int, ends: list[str]) -> None:
    async with open_editor() as editor:
        await report(editor, id="1", request_id=make_request_id(editor, age_ms=age_ms))

    assert editor.ends("1") == ends
    messages = [frame.message for frame in editor.frames if isinstance(frame, ErrorFrame)]
    assert messages == ["request_id must be of a request from the last 24 hours."] * len(ends)
    assert len(editor.journal.late_outcomes) == (0 if ends else 1)


@pytest.mark.parametrize(
    "fields",
    [{"chars": -1}, {"lines": 2**31}, {"edited_ratio": 0.5}, {"event": "persisted", "after_ms": 1}],
)
async def test_impossible_values_are_rejected(fields: dict[str, Any]) -> None:
    async with open_editor() as editor:
        await report(editor, **{"id": "1", "request_id": make_request_id(editor), **fields})

    assert editor.ends("1") == ["invalid_field"]
    assert editor.journal.records == []


async def test_an_outcome_without_any_id_is_rejected() -> None:
    async with open_editor() as editor:
        await report(editor)

    assert editor.ends("") == ["invalid_field"]


async def test_an_outcome_with_a_revoked_key_is_rejected() -> None:
    async with open_editor() as editor:
        editor.find_principal = _raise_revoked
        await report(editor, id="1", request_id=make_request_id(editor))

    assert editor.ends("1") == ["revoked_api_key"]
    assert editor.journal.records == []


async def test_late_outcomes_are_rate_limited_per_user() -> None:
    clock, journal = FakeClock(), FakeJournal()
    recorder = LateOutcomeRecorder(clock=clock, append_record=journal.append)
    request_id, outcome = new_request_id(now_ms=clock.now_ms()), OutcomeReport(OutcomeEvent.SHOWN)
    for _ in range(MAX_AT_ONCE):
        recorder.record(make_principal(), request_id, outcome)

    with pytest.raises(TooManyRequests, match="too_many_requests"):
        recorder.record(make_principal(), request_id, outcome)
    recorder.record(make_principal(user_id=ALICE), request_id, outcome)
    clock.pass_s(1.0)
    recorder.record(make_principal(), request_id, outcome)

    assert len(journal.late_outcomes) == MAX_AT_ONCE + 2


def test_late_outcomes_are_rate_limited_per_tenant() -> None:
    clock, journal = FakeClock(), FakeJournal()
    recorder = LateOutcomeRecorder(clock=clock, append_record=journal.append)
    request_id, outcome = new_request_id(now_ms=clock.now_ms()), OutcomeReport(OutcomeEvent.SHOWN)
    for number in range(MAX_OF_TENANT_AT_ONCE):
        # Each user reports as many outcomes as a user may report at once.
        user_id = UserId(str(uuid.UUID(int=number // MAX_AT_ONCE)))
        recorder.record(make_principal(user_id=user_id), request_id, outcome)

    with pytest.raises(TooManyRequests, match="too_many_requests"):
        recorder.record(make_principal(user_id=ALICE), request_id, outcome)
    recorder.record(make_principal(tenant_id=GLOBEX), request_id, outcome)
    clock.pass_s(1.0)
    recorder.record(make_principal(user_id=ALICE), request_id, outcome)

    assert len(journal.late_outcomes) == MAX_OF_TENANT_AT_ONCE + 2


def test_a_rejection_by_the_tenants_limit_does_not_use_up_the_users_limit() -> None:
    clock, journal = FakeClock(), FakeJournal()
    recorder = LateOutcomeRecorder(clock=clock, append_record=journal.append)
    request_id, outcome = new_request_id(now_ms=clock.now_ms()), OutcomeReport(OutcomeEvent.SHOWN)
    for number in range(MAX_OF_TENANT_AT_ONCE):
        user_id = UserId(str(uuid.UUID(int=number // MAX_AT_ONCE)))
        recorder.record(make_principal(user_id=user_id), request_id, outcome)
    for _ in range(MAX_AT_ONCE):
        with pytest.raises(TooManyRequests, match="too_many_requests"):
            recorder.record(make_principal(user_id=ALICE), request_id, outcome)

    clock.pass_s(1.0)  # the tenant may now report 32 more
    for _ in range(32):
        recorder.record(make_principal(user_id=ALICE), request_id, outcome)

    assert len(journal.late_outcomes) == MAX_OF_TENANT_AT_ONCE + 32


def _raise_revoked() -> None:
    raise UnauthenticatedRequest("revoked_api_key", "It was revoked.")
