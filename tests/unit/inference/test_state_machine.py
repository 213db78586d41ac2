"""The state machine of a completion: all combinations of states and events."""

from itertools import product

import pytest

from inference.gateway.protocol.frames import InvalidFrame
from inference.gateway.protocol.state_machine import (
    TRANSITIONS,
    CompletionEvent,
    CompletionState,
    ProtocolError,
    advance,
)

CLIENT_EVENTS = (CompletionEvent.COMPLETE, CompletionEvent.CANCEL, CompletionEvent.OUTCOME)
GATEWAY_EVENTS = (CompletionEvent.DELTA, CompletionEvent.DONE, CompletionEvent.ERROR)
LEGAL = [(s, e) for s, e in product(CompletionState, CompletionEvent) if e in TRANSITIONS[s]]
ILLEGAL = [(s, e) for s, e in product(CompletionState, CompletionEvent) if e not in TRANSITIONS[s]]
REJECTED = [(s, e) for s, e in ILLEGAL if e in CLIENT_EVENTS]
IMPOSSIBLE = [(s, e) for s, e in ILLEGAL if e in GATEWAY_EVENTS]


def test_every_state_has_a_row() -> None:
    assert set(TRANSITIONS) == set(CompletionState)


@pytest.mark.parametrize(("state", "event"), LEGAL)
def test_a_legal_event_leads_to_the_state_in_the_table(
    state: CompletionState, event: CompletionEvent
) -> None:
    assert advance(state, event) is TRANSITIONS[state][event]


@pytest.mark.parametrize(("state", "event"), REJECTED)
def test_an_illegal_event_of_the_client_is_rejected(
    state: CompletionState, event: CompletionEvent
) -> None:
    with pytest.raises(InvalidFrame) as rejected:
        advance(state, event)

    assert rejected.value.code == {"complete": "duplicate_id", "outcome": "unknown_id"}[event]


@pytest.mark.parametrize(("state", "event"), IMPOSSIBLE)
def test_an_illegal_event_of_the_gateway_is_an_internal_error(
    state: CompletionState, event: CompletionEvent
) -> None:
    with pytest.raises(ProtocolError):
        advance(state, event)


@pytest.mark.parametrize("state", list(CompletionState))
def test_only_an_unknown_id_can_begin_a_completion(state: CompletionState) -> None:
    assert (CompletionEvent.COMPLETE in TRANSITIONS[state]) == (state is CompletionState.UNKNOWN)


@pytest.mark.parametrize("state", list(CompletionState))
def test_a_cancel_is_always_legal(state: CompletionState) -> None:
    advance(state, CompletionEvent.CANCEL)


@pytest.mark.parametrize("state", list(CompletionState))
def test_text_comes_only_before_a_cancel_or_an_end(state: CompletionState) -> None:
    assert (CompletionEvent.DELTA in TRANSITIONS[state]) == (
        state in (CompletionState.PENDING, CompletionState.STREAMING)
    )


@pytest.mark.parametrize("end", [CompletionEvent.DONE, CompletionEvent.ERROR])
@pytest.mark.parametrize(
    "state", [CompletionState.PENDING, CompletionState.STREAMING, CompletionState.CANCELLING]
)
def test_a_completion_in_flight_can_end(state: CompletionState, end: CompletionEvent) -> None:
    assert advance(state, end) is CompletionState.ENDED


@pytest.mark.parametrize("event", GATEWAY_EVENTS)
def test_no_gateway_event_follows_the_end(event: CompletionEvent) -> None:
    assert event not in TRANSITIONS[CompletionState.ENDED]


@pytest.mark.parametrize("state", list(CompletionState))
def test_outcomes_are_legal_only_after_the_end(state: CompletionState) -> None:
    assert (CompletionEvent.OUTCOME in TRANSITIONS[state]) == (state is CompletionState.ENDED)
