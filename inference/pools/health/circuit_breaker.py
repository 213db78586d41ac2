"""The circuit breaker of one replica: a table, and nothing beside it.

Closed, it is asked. Open, it is left alone until it has rested; then, half open, one request tries
it, and what becomes of that one decides.
"""

from enum import StrEnum
from typing import Final


class CircuitState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CircuitEvent(StrEnum):
    SUCCESS = "success"  # it has generated
    FAILURE = "failure"  # it did not, and others before have not made it too many
    THRESHOLD_FAILURE = "last_failure"  # too many in a row, or it says itself that it is not well
    COOLDOWN_OVER = "rest_over"


TRANSITIONS: Final[dict[CircuitState, dict[CircuitEvent, CircuitState]]] = {
    CircuitState.CLOSED: {
        CircuitEvent.SUCCESS: CircuitState.CLOSED,
        CircuitEvent.FAILURE: CircuitState.CLOSED,
        CircuitEvent.THRESHOLD_FAILURE: CircuitState.OPEN,
        CircuitEvent.COOLDOWN_OVER: CircuitState.CLOSED,
    },
    CircuitState.OPEN: {
        # Asked all the same, because no other was well: it is back.
        CircuitEvent.SUCCESS: CircuitState.CLOSED,
        CircuitEvent.FAILURE: CircuitState.OPEN,
        CircuitEvent.THRESHOLD_FAILURE: CircuitState.OPEN,
        CircuitEvent.COOLDOWN_OVER: CircuitState.HALF_OPEN,
    },
    CircuitState.HALF_OPEN: {
        CircuitEvent.SUCCESS: CircuitState.CLOSED,
        CircuitEvent.FAILURE: CircuitState.OPEN,
        CircuitEvent.THRESHOLD_FAILURE: CircuitState.OPEN,
        CircuitEvent.COOLDOWN_OVER: CircuitState.HALF_OPEN,
    },
}


def advance(circuit: CircuitState, event: CircuitEvent) -> CircuitState:
    return TRANSITIONS[circuit][event]
