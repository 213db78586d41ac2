"""The numbers of a replica's event batches: what is missing, doubled, or a new beginning. Pure."""

from enum import StrEnum


class SequenceStatus(StrEnum):
    NEXT = "next"  # to be applied
    SEEN = "seen"  # a replay has brought it already
    GAP = "gap"  # something before it was lost
    RESTART = "restart"  # the engine counts anew: its cache is empty


class BatchSequence:
    def __init__(self) -> None:
        self._expected = 0  # the next number to be applied
        self._last_live: int | None = None  # as published, not replayed

    @property
    def expected(self) -> int:
        return self._expected

    def check(self, number: int) -> SequenceStatus:
        """Of a batch as published."""
        is_anew = self._last_live is not None and number <= self._last_live
        self._last_live = number
        if is_anew:
            self._expected = 0
            return SequenceStatus.RESTART
        if number < self._expected:
            return SequenceStatus.SEEN
        return SequenceStatus.NEXT if number == self._expected else SequenceStatus.GAP

    def mark_applied(self, number: int) -> None:
        self._expected = number + 1
