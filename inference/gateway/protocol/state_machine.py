"""The life of one completion on a connection: a table, and nothing beside it.

Rules:
1. An id begins with `complete` and is not used again while the connection remembers it.
2. After `cancel` no `delta` follows; exactly one `done` or `error` ends every completion.
3. A `cancel` that comes too late, or for an id that nobody knows, is harmless: it crossed the end.
4. Outcomes are reported of completions that have ended.
"""

from enum import StrEnum
from typing import Final

from inference.gateway.protocol.frames import BadFrame


class State(StrEnum):
    UNKNOWN = "unknown"
    PENDING = "pending"  # received, nothing sent yet
    STREAMING = "streaming"
    CANCELLING = "cancelling"  # taken back or superseded; its end is on the way
    ENDED = "ended"


class Event(StrEnum):
    COMPLETE = "complete"  # client
    CANCEL = "cancel"  # client, or a newer `complete` for the same path
    OUTCOME = "outcome"  # client
    DELTA = "delta"  # gateway
    DONE = "done"  # gateway
    ERROR = "error"  # gateway


TRANSITIONS: Final[dict[State, dict[Event, State]]] = {
    State.UNKNOWN: {Event.COMPLETE: State.PENDING, Event.CANCEL: State.UNKNOWN},
    State.PENDING: {
        Event.DELTA: State.STREAMING,
        Event.CANCEL: State.CANCELLING,
        Event.DONE: State.ENDED,
        Event.ERROR: State.ENDED,
    },
    State.STREAMING: {
        Event.DELTA: State.STREAMING,
        Event.CANCEL: State.CANCELLING,
        Event.DONE: State.ENDED,
        Event.ERROR: State.ENDED,
    },
    State.CANCELLING: {
        Event.CANCEL: State.CANCELLING,
        Event.DONE: State.ENDED,
        Event.ERROR: State.ENDED,
    },
    State.ENDED: {Event.CANCEL: State.ENDED, Event.OUTCOME: State.ENDED},
}

_EXPLANATIONS: Final = {
    Event.COMPLETE: ("duplicate_id", "This id was used before on this connection."),
    Event.OUTCOME: ("unknown_id", "No completion with this id has ended on this connection."),
}


class ProtocolDefect(Exception):
    """The gateway itself was about to break the protocol."""


def advance(state: State, event: Event) -> State:
    """Raises BadFrame for what a client may not do, ProtocolDefect for what the gateway may not."""
    following = TRANSITIONS[state].get(event)
    if following is not None:
        return following
    if event in _EXPLANATIONS:
        raise BadFrame(*_EXPLANATIONS[event])
    raise ProtocolDefect(f"{event} in state {state}")
