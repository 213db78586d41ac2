"""The circuit breaker of one replica: a table, and nothing beside it.

Closed, it is asked. Open, it is left alone until it has rested; then, half open, one request tries
it, and what becomes of that one decides.
"""

from enum import StrEnum
from typing import Final


class Circuit(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Event(StrEnum):
    SUCCESS = "success"  # it has generated
    FAILURE = "failure"  # it did not, and others before have not made it too many
    LAST_FAILURE = "last_failure"  # too many in a row, or it says itself that it is not well
    REST_OVER = "rest_over"


TRANSITIONS: Final[dict[Circuit, dict[Event, Circuit]]] = {
    Circuit.CLOSED: {
        Event.SUCCESS: Circuit.CLOSED,
        Event.FAILURE: Circuit.CLOSED,
        Event.LAST_FAILURE: Circuit.OPEN,
        Event.REST_OVER: Circuit.CLOSED,
    },
    Circuit.OPEN: {
        # Asked all the same, because no other was well: it is back.
        Event.SUCCESS: Circuit.CLOSED,
        Event.FAILURE: Circuit.OPEN,
        Event.LAST_FAILURE: Circuit.OPEN,
        Event.REST_OVER: Circuit.HALF_OPEN,
    },
    Circuit.HALF_OPEN: {
        Event.SUCCESS: Circuit.CLOSED,
        Event.FAILURE: Circuit.OPEN,
        Event.LAST_FAILURE: Circuit.OPEN,
        Event.REST_OVER: Circuit.HALF_OPEN,
    },
}


def advance(circuit: Circuit, event: Event) -> Circuit:
    return TRANSITIONS[circuit][event]
