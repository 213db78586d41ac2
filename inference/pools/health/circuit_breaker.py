"""The circuit breaker of one replica, as a state table.

Closed: requests are sent. Open: no requests are sent until the cooldown is over, unless no
other replica is available. Half open: one trial request is sent. If it succeeds, the circuit
closes; if it fails, the circuit opens again. `replica_states` has the limits and times.
"""

from enum import StrEnum
from typing import Final


class CircuitState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CircuitEvent(StrEnum):
    SUCCESS = "success"  # the replica generated tokens
    FAILURE = "failure"  # the replica failed, but fewer than MAX_FAILURES times in a row
    # The replica failed at least MAX_FAILURES times in a row, or a health check found it unhealthy.
    THRESHOLD_FAILURE = "threshold_failure"
    COOLDOWN_OVER = "cooldown_over"


TRANSITIONS: Final[dict[CircuitState, dict[CircuitEvent, CircuitState]]] = {
    CircuitState.CLOSED: {
        CircuitEvent.SUCCESS: CircuitState.CLOSED,
        CircuitEvent.FAILURE: CircuitState.CLOSED,
        CircuitEvent.THRESHOLD_FAILURE: CircuitState.OPEN,
        CircuitEvent.COOLDOWN_OVER: CircuitState.CLOSED,
    },
    CircuitState.OPEN: {
        # The replica was used because no other was available, and it works again.
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


def advance(state: CircuitState, event: CircuitEvent) -> CircuitState:
    """Return the state after the event."""
    return TRANSITIONS[state][event]
