"""Checks the numbers of a replica's event batches: gaps, duplicates and restarts. Pure."""

from enum import StrEnum


class SequenceStatus(StrEnum):
    NEXT = "next"  # apply it
    SEEN = "seen"  # a replay already included it
    GAP = "gap"  # an earlier batch was lost
    RESTART = "restart"  # the engine restarted: its cache is empty


class BatchSequence:
    def __init__(self) -> None:
        self._expected = 0  # the next number to apply
        self._last_live: int | None = None  # last published number, without replays

    @property
    def expected(self) -> int:
        return self._expected

    def check(self, number: int) -> SequenceStatus:
        """Classify a published batch."""
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
