"""What a build may be, and become.

queued --begin--> building --finish--> finished --expire--> expired
  |                  |  `--fail----> failed
  `------cancel------´---> cancelled
"""

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class State(StrEnum):
    QUEUED = "queued"
    BUILDING = "building"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Event(StrEnum):
    BEGIN = "begin"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "cancel"
    EXPIRE = "expire"


class NotAllowed(Exception):
    """It cannot become this from there."""


TABLE: Final = MappingProxyType(
    {
        (State.QUEUED, Event.BEGIN): State.BUILDING,
        (State.QUEUED, Event.CANCEL): State.CANCELLED,
        (State.BUILDING, Event.FINISH): State.FINISHED,
        (State.BUILDING, Event.FAIL): State.FAILED,
        (State.BUILDING, Event.CANCEL): State.CANCELLED,
        (State.FINISHED, Event.EXPIRE): State.EXPIRED,
    }
)
UNDER_WAY: Final = (State.QUEUED, State.BUILDING)
# Their objects are of no more use.
OVER: Final = (State.FAILED, State.CANCELLED, State.EXPIRED)


def advance(state: State, event: Event) -> State:
    """Raises NotAllowed."""
    try:
        return TABLE[state, event]
    except KeyError as error:
        raise NotAllowed(f"{state} cannot {event}.") from error
