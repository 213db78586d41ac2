"""The states of one completion on a connection, as a table.

Rules:
1. A `complete` frame puts an ID in use. The ID cannot be reused while the connection remembers it.
2. After `cancel` no `delta` follows. Exactly one `done` or `error` ends every completion.
3. A `cancel` for a completion that has ended, or for an unknown ID, is ignored: the completion may
   have ended while the frame was on its way.
4. Outcomes are reported for completions that have ended.
"""

from enum import StrEnum
from typing import Final

from inference.gateway.protocol.frames import InvalidFrame


class CompletionState(StrEnum):
    UNKNOWN = "unknown"
    PENDING = "pending"  # received, nothing sent yet
    STREAMING = "streaming"
    CANCELLING = "cancelling"  # cancelled or superseded; `done` or `error` has not been sent yet
    ENDED = "ended"


class CompletionEvent(StrEnum):
    """The events of a completion. The comments name the cause of each event."""

    COMPLETE = "complete"  # client
    CANCEL = "cancel"  # client, or a newer `complete` for the same path
    OUTCOME = "outcome"  # client
    DELTA = "delta"  # gateway
    DONE = "done"  # gateway
    ERROR = "error"  # gateway


TRANSITIONS: Final[dict[CompletionState, dict[CompletionEvent, CompletionState]]] = {
    CompletionState.UNKNOWN: {
        CompletionEvent.COMPLETE: CompletionState.PENDING,
        CompletionEvent.CANCEL: CompletionState.UNKNOWN,
    },
    CompletionState.PENDING: {
        CompletionEvent.DELTA: CompletionState.STREAMING,
        CompletionEvent.CANCEL: CompletionState.CANCELLING,
        CompletionEvent.DONE: CompletionState.ENDED,
        CompletionEvent.ERROR: CompletionState.ENDED,
    },
    CompletionState.STREAMING: {
        CompletionEvent.DELTA: CompletionState.STREAMING,
        CompletionEvent.CANCEL: CompletionState.CANCELLING,
        CompletionEvent.DONE: CompletionState.ENDED,
        CompletionEvent.ERROR: CompletionState.ENDED,
    },
    CompletionState.CANCELLING: {
        CompletionEvent.CANCEL: CompletionState.CANCELLING,
        CompletionEvent.DONE: CompletionState.ENDED,
        CompletionEvent.ERROR: CompletionState.ENDED,
    },
    CompletionState.ENDED: {
        CompletionEvent.CANCEL: CompletionState.ENDED,
        CompletionEvent.OUTCOME: CompletionState.ENDED,
    },
}

# For a client's event that is not allowed: code and message.
_EXPLANATIONS: Final = {
    CompletionEvent.COMPLETE: ("duplicate_id", "This id was used before on this connection."),
    CompletionEvent.OUTCOME: (
        "unknown_id",
        "No completion with this id has ended on this connection.",
    ),
}


class ProtocolError(Exception):
    """The gateway itself was about to violate the protocol: a defect."""


def advance(state: CompletionState, event: CompletionEvent) -> CompletionState:
    """Return the state after the event.

    Raises InvalidFrame if the client may not cause the event in this state, and ProtocolError if
    the gateway may not.
    """
    next_state = TRANSITIONS[state].get(event)
    if next_state is not None:
        return next_state
    if event in _EXPLANATIONS:
        raise InvalidFrame(*_EXPLANATIONS[event])
    raise ProtocolError(f"{event} in state {state}")
