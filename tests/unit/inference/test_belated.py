"""Outcomes that name a request made on another connection."""

import json
import uuid
from typing import Any

import pytest

from caret.contracts.usage import OutcomeEvent
from caret.foundation.ids import UserId, new_request_id
from inference.errors import TooManyRequests, UnauthenticatedRequest
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

PERSISTED = {"event": "persisted", "after_ms": 31_000, "edited_ratio": 0.1}


def request_id(editor: Editor, *, age_ms: int = 0) -> str:
    return new_request_id(now_ms=editor.clock.now_ms() - age_ms)


async def tell(editor: Editor, **fields: Any) -> None:
    await editor.connection.on_frame(json.dumps({"type": "outcome", "event": "accepted"} | fields))


async def test_what_another_connection_was_asked_is_told_by_its_request() -> None:
    async with open_editor() as editor:
        named = request_id(editor)
        await tell(editor, request_id=named, id="of-the-other", chars=9_000, **PERSISTED)

    (belated,) = editor.journal.belated
    assert (belated.request_id, belated.tenant_id, belated.user_id) == (named, ACME, ADA)
    assert (belated.event, belated.span_s, belated.chars, belated.lines) == (
        *("persisted", 30, 9_000, None),
    )
    assert (editor.journal.outcomes, editor.frames) == ([], [])


async def test_its_own_completion_is_known_by_either_name() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        own = editor.arrivals[0].request_id
        await tell(editor, id="1", request_id=own, chars=9_000)

    (outcome,) = editor.journal.outcomes
    assert (outcome.request_id, outcome.chars) == (own, 2)
    assert editor.journal.belated == []


async def test_an_id_that_two_connections_have_used_means_the_request() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")
        await tell(editor, id="1", request_id=request_id(editor))

    assert len(editor.journal.belated) == 1
    assert editor.journal.outcomes == []


async def test_its_text_is_not_handed_on() -> None:
    async with open_editor() as editor:
        await tell(editor, request_id=request_id(editor), text="planted")

    assert editor.edits == []
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
async def test_what_no_gateway_has_named_is_refused(text: str) -> None:
    async with open_editor() as editor:
        await tell(editor, id="1", request_id=text)

    assert editor.ends("1") == ["invalid_field"]
    assert editor.journal.records == []


@pytest.mark.parametrize(
    ("age_ms", "ends"),
    [
        (MAX_AGE_MS, []),
        (MAX_AGE_MS + 1, ["unknown_id"]),
        (-MAX_AHEAD_MS, []),
        (-MAX_AHEAD_MS - 1, ["unknown_id"]),
    ],
)
async def test_a_request_is_told_of_for_a_day(age_ms: int, ends: list[str]) -> None:
    async with open_editor() as editor:
        await tell(editor, id="1", request_id=request_id(editor, age_ms=age_ms))

    assert editor.ends("1") == ends
    assert len(editor.journal.belated) == (not ends)


@pytest.mark.parametrize(
    "fields",
    [{"chars": -1}, {"lines": 2**31}, {"edited_ratio": 0.5}, {"event": "persisted", "after_ms": 1}],
)
async def test_impossible_numbers_are_refused(fields: dict[str, Any]) -> None:
    async with open_editor() as editor:
        await tell(editor, **{"id": "1", "request_id": request_id(editor), **fields})

    assert editor.ends("1") == ["invalid_field"]
    assert editor.journal.records == []


async def test_without_either_name_it_is_refused() -> None:
    async with open_editor() as editor:
        await tell(editor)

    assert editor.ends("") == ["invalid_field"]


async def test_whose_key_has_ended_tells_nothing() -> None:
    async with open_editor() as editor:
        editor.present = _raise
        await tell(editor, id="1", request_id=request_id(editor))

    assert editor.ends("1") == ["revoked_api_key"]
    assert editor.journal.records == []


async def test_who_tells_without_end_is_paced_and_his_colleague_is_not() -> None:
    clock, journal = FakeClock(), FakeJournal()
    belated = LateOutcomeRecorder(clock=clock, keep=journal.append)
    named, told = new_request_id(now_ms=clock.now_ms()), OutcomeReport(OutcomeEvent.SHOWN)
    for _ in range(MAX_AT_ONCE):
        belated.record(make_principal(), named, told)

    with pytest.raises(TooManyRequests, match="too_many_requests"):
        belated.record(make_principal(), named, told)
    belated.record(make_principal(user_id=ALICE), named, told)
    clock.pass_s(1.0)
    belated.record(make_principal(), named, told)

    assert len(journal.belated) == MAX_AT_ONCE + 2


def test_a_tenants_people_are_paced_together_and_no_others() -> None:
    clock, journal = FakeClock(), FakeJournal()
    belated = LateOutcomeRecorder(clock=clock, keep=journal.append)
    named, told = new_request_id(now_ms=clock.now_ms()), OutcomeReport(OutcomeEvent.SHOWN)
    for number in range(MAX_OF_TENANT_AT_ONCE):
        person = UserId(str(uuid.UUID(int=number // MAX_AT_ONCE)))
        belated.record(make_principal(user_id=person), named, told)

    with pytest.raises(TooManyRequests, match="too_many_requests"):
        belated.record(make_principal(user_id=ALICE), named, told)
    belated.record(make_principal(tenant_id=GLOBEX), named, told)
    clock.pass_s(1.0)
    belated.record(make_principal(user_id=ALICE), named, told)

    assert len(journal.belated) == MAX_OF_TENANT_AT_ONCE + 2


def _raise() -> None:
    raise UnauthenticatedRequest("revoked_api_key", "It was revoked.")
