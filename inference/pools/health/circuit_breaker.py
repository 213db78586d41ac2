"""The circuit breaker of one replica, as a state table.

Closed: requests are sent. Open: no requests are sent until the cooldown is over, unless no
other replica is available. Half open: one trial request is sent, and its result decides.
"""

from enum import StrEnum
from typing import Final


class CircuitState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CircuitEvent(StrEnum):
    SUCCESS = "success"  # the replica generated tokens
    FAILURE = "failure"  # the replica failed, but not too often in a row
    # The replica failed too often in a row, or a health check found it unhealthy.
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
        # The replica was used because no other was healthy, and it works again.
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
