"""The slowest completions of the last hour, for the operators' page, without user and key IDs.

A completion is slow if its latency exceeds its mode's target. The latency is the time until the
first text, or until the end if there was no text. Completions are ranked by the ratio of latency to
target. Time is divided into slots of five minutes. Up to _MAX_PER_SLOT completions are kept for
each slot, so that some remain when older slots expire. SlowLog logs slow completions.
"""

from heapq import heappush, heappushpop
from itertools import count
from typing import Final

import structlog
from msgspec.structs import replace

from caret.contracts.latency_targets import FIRST_TOKEN_TARGETS_MS
from caret.contracts.usage import CompletionRecord, UsageRecord, encode_records
from caret.foundation.clock import Clock
from caret.foundation.ids import KeyId
from inference.completion.request_trace import RequestTrace
from inference.recording.record import Journal
from inference.recording.stage_timings import compute_stage_timings

KEPT_S: Final = 3_600
MAX_RECORDS: Final = 50  # on the page
_SLOT_S: Final = 300
_MAX_PER_SLOT: Final = 20
_HeapEntry = tuple[float, int, CompletionRecord]  # latency / target, arrival number, record


class SlowestRequests:
    """The slowest completions of one gateway. Used on one event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._slots: dict[int, list[_HeapEntry]] = {}  # heaps, by slot number
        self._arrival_numbers = count()

    def add(self, record: CompletionRecord) -> None:
        """Keep the record if the completion was slow."""
        waited_ms = record.total_ms if record.first_token_ms is None else record.first_token_ms
        slowness = waited_ms / FIRST_TOKEN_TARGETS_MS[record.mode]
        if slowness <= 1:
            return
        heap = self._slots.setdefault(self._current_slot(), [])
        if len(heap) < _MAX_PER_SLOT:
            heappush(heap, (slowness, next(self._arrival_numbers), _anonymize(record)))
        elif slowness > heap[0][0]:  # heap[0] is the least slow entry
            heappushpop(heap, (slowness, next(self._arrival_numbers), _anonymize(record)))
        self._evict_expired()

    @property
    def num_records(self) -> int:
        return sum(map(len, self._slots.values()))

    def records(self) -> list[CompletionRecord]:
        """Return the records, slowest first."""
        self._evict_expired()
        entries = sorted((entry for heap in self._slots.values() for entry in heap), reverse=True)
        return [record for _, _, record in entries[:MAX_RECORDS]]

    def encode(self) -> bytes:
        """Return the records as msgpack, slowest first."""
        return encode_records(list(self.records()))

    def _evict_expired(self) -> None:
        oldest_slot = self._current_slot() - KEPT_S // _SLOT_S
        for slot in [slot for slot in self._slots if slot < oldest_slot]:
            del self._slots[slot]

    def _current_slot(self) -> int:
        return int(self._clock.monotonic_s() // _SLOT_S)


class SlowestRequestsJournal:
    """The journal; also adds the completions that are written to it to SlowestRequests."""

    def __init__(self, journal: Journal, slowest: SlowestRequests) -> None:
        self._journal = journal
        self._slowest = slowest

    def append(self, record: UsageRecord) -> None:
        if isinstance(record, CompletionRecord):
            self._slowest.add(record)
        self._journal.append(record)


def _anonymize(record: CompletionRecord) -> CompletionRecord:
    """Remove the IDs of user and key. Operators do not need them to explain a slow request."""
    return replace(record, user_id=None, key_id=KeyId(""))


# At most MAX_LINES lines are logged in PERIOD_S seconds, because all completions may be slow under
# overload. Metrics count them all.
MAX_LINES: Final = 10
PERIOD_S: Final = 10.0
log = structlog.get_logger(__name__)


class SlowLog:
    """A CompletionObserver that logs slow completions that had text."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_s = clock.monotonic_s()  # start of the current period of PERIOD_S seconds
        self._num_lines = 0  # due in this period, including withheld ones
        self._num_withheld = 0  # since the last logged line

    def on_completed(self, trace: RequestTrace) -> None:
        request, first_ms = trace.request, trace.first_token_ms
        if request is None or request.is_warm_up or first_ms is None:
            return
        if first_ms <= FIRST_TOKEN_TARGETS_MS[request.mode]:
            return
        if not self._count_line():
            self._num_withheld += 1
            return
        times = compute_stage_timings(trace, recorded_s=self._clock.monotonic_s())
        log.info(
            "completion.slow",
            request_id=trace.arrival.request_id,
            mode=request.mode.value,
            pool=trace.pool,
            replica=trace.replica,
            first_token_ms=first_ms,
            target_ms=FIRST_TOKEN_TARGETS_MS[request.mode],
            stages_ms={timing.stage: _to_ms(timing.ended_s - timing.began_s) for timing in times},
            num_withheld=self._num_withheld,
        )
        self._num_withheld = 0

    def _count_line(self) -> bool:
        """Count a line. Return whether it may be logged."""
        now_s = self._clock.monotonic_s()
        if now_s - self._since_s >= PERIOD_S:
            self._since_s, self._num_lines = now_s, 0
        self._num_lines += 1
        return self._num_lines <= MAX_LINES


def _to_ms(seconds: float) -> float:
    return round(seconds * 1000, 2)
