"""Garbage collection at moments when it delays no request.

CPython's collector scans all objects whenever the new ones exceed a quarter of the old ones. With
10,000 open sockets, such a scan blocks the event loop for most of a second. So the interpreter's
collector is disabled, and the objects that exist at start are frozen, that is, excluded from
collections. A task checks every TICK_S which collection is due:

    young    collects the objects since the last collection, if they are at least MIN_YOUNG
    middle   also collects the objects that survived young collections. It replaces each tenth young
             collection, or an earlier one if the young collections before it took MAX_YOUNG_COST_S.
             A middle collection takes about as long as these young collections together, so the
             limit keeps it short
    full     collects all objects that are not frozen. Its duration grows with their number. So it
             waits until memory has grown by MIN_GROWN_BLOCKS, and for a quiet moment. If memory has
             grown by MAX_GROWN_BLOCKS, it runs at once

Reference counting still frees most objects. The collector only frees reference cycles.
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import structlog

from caret.foundation.clock import Clock

TICK_S: Final = 0.1
MIN_YOUNG: Final = 700  # objects; the interpreter's own threshold
YOUNG_PER_MIDDLE: Final = 10  # each tenth young collection is replaced by a middle one
MAX_YOUNG_COST_S: Final = 0.012  # total time of the young collections since the last middle one
# In blocks of the interpreter's allocator, about 80 bytes each. 10,000 connections need less than
# half of MAX_GROWN_BLOCKS.
MIN_GROWN_BLOCKS: Final = 500_000  # 40 MB
MAX_GROWN_BLOCKS: Final = 8_000_000  # 640 MB
QUIET_S: Final = 1.0  # minimum time without requests before a full collection
COUNT_EVERY_S: Final = 5.0  # counting a million blocks takes 0.5 ms
# Required quiet time, in proportion to the duration of the last full collection.
_QUIET_PER_COST: Final = 10.0
log = structlog.get_logger(__name__)


class Generation(IntEnum):
    """Generations as `gc.collect` numbers them."""

    YOUNG = 0
    MIDDLE = 1
    FULL = 2


@dataclass(frozen=True, slots=True)
class GcState:
    """The inputs of the decision which generation to collect."""

    now_s: float  # monotonic
    num_young: int  # objects created and not freed since the last collection
    num_blocks: int  # allocated blocks, see MIN_GROWN_BLOCKS
    is_quiet: bool  # no request is in flight


class CollectionSchedule:
    """Decides which generation is due. The caller passes in time and memory."""

    def __init__(self, *, num_blocks: int) -> None:
        self._min_blocks = num_blocks  # the minimum since the last full collection
        self._num_young_collections = 0  # since the last middle collection
        self._young_cost_s = 0.0  # total time of these collections
        self._quiet_since_s: float | None = None  # monotonic; None: not quiet
        self._required_quiet_s = QUIET_S

    def choose_due(self, state: GcState) -> Generation | None:
        """Choose the generation that the caller must collect now; None if none is due.

        The chosen generation counts as collected. Afterwards, the caller reports the duration of a
        young collection to `on_collected_young`, and that of a full one to `on_collected_all`.
        """
        self._min_blocks = min(self._min_blocks, state.num_blocks)
        self._track_quiet(state)
        if self._is_full_due(state):
            return Generation.FULL
        if state.num_young < MIN_YOUNG:
            return None
        self._num_young_collections += 1
        if self._num_young_collections < YOUNG_PER_MIDDLE and self._young_cost_s < MAX_YOUNG_COST_S:
            return Generation.YOUNG
        self._num_young_collections, self._young_cost_s = 0, 0.0
        return Generation.MIDDLE

    def on_collected_young(self, *, cost_s: float) -> None:
        self._young_cost_s += cost_s

    def on_collected_all(self, *, num_blocks: int, cost_s: float) -> None:
        self._min_blocks = num_blocks
        self._quiet_since_s = None
        self._required_quiet_s = max(QUIET_S, _QUIET_PER_COST * cost_s)

    def _track_quiet(self, state: GcState) -> None:
        """Store since when the process is quiet."""
        # Many new objects show that the process is at work, even if no request is in flight.
        if not state.is_quiet or state.num_young >= MIN_YOUNG:
            self._quiet_since_s = None
        elif self._quiet_since_s is None:
            self._quiet_since_s = state.now_s

    def _is_full_due(self, state: GcState) -> bool:
        has_been_quiet = (
            self._quiet_since_s is not None
            and state.now_s - self._quiet_since_s >= self._required_quiet_s
        )
        min_new_blocks = MIN_GROWN_BLOCKS if has_been_quiet else MAX_GROWN_BLOCKS
        return state.num_blocks - self._min_blocks >= min_new_blocks


class GcScheduler:
    """Collects garbage for the main event loop of a process."""

    def __init__(self, clock: Clock, is_quiet: Callable[[], bool]) -> None:
        self._clock = clock
        self._is_quiet = is_quiet
        self._num_blocks = sys.getallocatedblocks()
        self._next_count_at_s = clock.monotonic_s() + COUNT_EVERY_S  # of the blocks
        self._schedule = CollectionSchedule(num_blocks=self._num_blocks)

    async def run(self) -> None:
        """Collect until cancelled."""
        while True:
            await asyncio.sleep(TICK_S)
            self.tick()

    def tick(self) -> Generation | None:
        """Collect the generation that is due and return it; None if none is due."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._next_count_at_s:
            self._count_blocks(now_s)
        state = GcState(
            now_s=now_s,
            num_young=gc.get_count()[0],  # the first of three counters
            num_blocks=self._num_blocks,
            is_quiet=self._is_quiet(),
        )
        generation = self._schedule.choose_due(state)
        if generation is not None:
            num_found = gc.collect(generation)
            if generation is Generation.FULL:
                self._record_full(state, num_found)
            elif generation is Generation.YOUNG:
                self._schedule.on_collected_young(cost_s=self._clock.monotonic_s() - now_s)
        return generation

    def _count_blocks(self, now_s: float) -> None:
        self._num_blocks = sys.getallocatedblocks()
        self._next_count_at_s = now_s + COUNT_EVERY_S

    def _record_full(self, state: GcState, num_found: int) -> None:
        now_s = self._clock.monotonic_s()
        cost_s = now_s - state.now_s
        self._count_blocks(now_s)
        self._schedule.on_collected_all(num_blocks=self._num_blocks, cost_s=cost_s)
        cost_ms = round(cost_s * 1000, 1)
        log.info("garbage.collected", cost_ms=cost_ms, num_found=num_found, quiet=state.is_quiet)


@contextmanager
def disabled_gc() -> Iterator[None]:
    """Disable the interpreter's collector until the block ends, and freeze all existing objects.

    The objects stay frozen after the block. Otherwise, the end of the process would search them.
    Run a `GcScheduler` during the block. Without it, reference cycles are not freed.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
