"""States of an export job and their transitions.

queued --begin--> running --finish--> finished --expire--> expired
  |                 |  `--fail----> failed
  `------cancel-----´---> cancelled
"""

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class JobEvent(StrEnum):
    BEGIN = "begin"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "cancel"
    EXPIRE = "expire"


class InvalidTransition(Exception):
    """The state does not allow the event."""


TRANSITIONS: Final = MappingProxyType(
    {
        (JobState.QUEUED, JobEvent.BEGIN): JobState.RUNNING,
        (JobState.QUEUED, JobEvent.CANCEL): JobState.CANCELLED,
        (JobState.RUNNING, JobEvent.FINISH): JobState.FINISHED,
        (JobState.RUNNING, JobEvent.FAIL): JobState.FAILED,
        (JobState.RUNNING, JobEvent.CANCEL): JobState.CANCELLED,
        (JobState.FINISHED, JobEvent.EXPIRE): JobState.EXPIRED,
    }
)
UNDER_WAY: Final = (JobState.QUEUED, JobState.RUNNING)
# The objects of these jobs are no longer needed.
TERMINAL: Final = (JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED)


def advance(state: JobState, event: JobEvent) -> JobState:
    """Return the next state. Raises InvalidTransition."""
    try:
        return TRANSITIONS[state, event]
    except KeyError as error:
        raise InvalidTransition(f"{state} cannot {event}.") from error
