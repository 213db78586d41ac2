"""The table of states, walked whole."""

from itertools import product

import pytest

from inference.gateway.protocol.frames import BadFrame
from inference.gateway.protocol.state_machine import (
    TRANSITIONS,
    Event,
    ProtocolDefect,
    State,
    advance,
)

CLIENT_EVENTS = (Event.COMPLETE, Event.CANCEL, Event.OUTCOME)
GATEWAY_EVENTS = (Event.DELTA, Event.DONE, Event.ERROR)
LEGAL = [(s, e) for s, e in product(State, Event) if e in TRANSITIONS[s]]
ILLEGAL = [(s, e) for s, e in product(State, Event) if e not in TRANSITIONS[s]]
REFUSED = [(s, e) for s, e in ILLEGAL if e in CLIENT_EVENTS]
IMPOSSIBLE = [(s, e) for s, e in ILLEGAL if e in GATEWAY_EVENTS]


def test_every_state_has_its_row() -> None:
    assert set(TRANSITIONS) == set(State)


@pytest.mark.parametrize(("state", "event"), LEGAL)
def test_a_legal_event_leads_where_the_table_says(state: State, event: Event) -> None:
    assert advance(state, event) is TRANSITIONS[state][event]


@pytest.mark.parametrize(("state", "event"), REFUSED)
def test_what_a_client_may_not_do_is_refused(state: State, event: Event) -> None:
    with pytest.raises(BadFrame) as refused:
        advance(state, event)

    assert refused.value.code == {"complete": "duplicate_id", "outcome": "unknown_id"}[event]


@pytest.mark.parametrize(("state", "event"), IMPOSSIBLE)
def test_what_the_gateway_may_not_do_is_its_own_defect(state: State, event: Event) -> None:
    with pytest.raises(ProtocolDefect):
        advance(state, event)


@pytest.mark.parametrize("state", list(State))
def test_an_id_begins_only_once(state: State) -> None:
    assert (Event.COMPLETE in TRANSITIONS[state]) == (state is State.UNKNOWN)


@pytest.mark.parametrize("state", list(State))
def test_a_cancel_is_always_harmless(state: State) -> None:
    advance(state, Event.CANCEL)


@pytest.mark.parametrize("state", list(State))
def test_text_comes_only_before_a_cancel_and_an_end(state: State) -> None:
    assert (Event.DELTA in TRANSITIONS[state]) == (state in (State.PENDING, State.STREAMING))


@pytest.mark.parametrize("end", [Event.DONE, Event.ERROR])
@pytest.mark.parametrize("state", [State.PENDING, State.STREAMING, State.CANCELLING])
def test_whatever_is_under_way_can_end(state: State, end: Event) -> None:
    assert advance(state, end) is State.ENDED


@pytest.mark.parametrize("event", GATEWAY_EVENTS)
def test_nothing_follows_the_end(event: Event) -> None:
    assert event not in TRANSITIONS[State.ENDED]


@pytest.mark.parametrize("state", list(State))
def test_outcomes_are_of_ended_completions_only(state: State) -> None:
    assert (Event.OUTCOME in TRANSITIONS[state]) == (state is State.ENDED)
