"""Garbage collection: cycles are freed soon, full collections run when the process is idle.

Strong growth of the memory forces a full collection.
"""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from caret.foundation.garbage_collection import (
    COUNT_EVERY_S,
    MAX_GROWN_BLOCKS,
    MAX_YOUNG_COST_S,
    MIN_GROWN_BLOCKS,
    MIN_YOUNG,
    QUIET_S,
    TICK_S,
    YOUNG_PER_MIDDLE,
    CollectionSchedule,
    GcScheduler,
    GcState,
    Generation,
    disabled_gc,
)
from tests.fakes.clock import FakeClock
from tests.fakes.polling import wait_until

BLOCKS = 1_000_000  # allocated blocks of memory at the start
FULL, YOUNG = Generation.FULL, Generation.YOUNG


@pytest.fixture
def schedule() -> CollectionSchedule:
    return CollectionSchedule(num_blocks=BLOCKS)


@pytest.fixture
def _disabled_interpreter_gc() -> Iterator[None]:
    with disabled_gc():
        yield


def _state(
    now_s: float = 0.0, *, young: int = 0, grown: int = 0, is_quiet: bool = False
) -> GcState:
    """Return a state with `young` new objects and `grown` blocks more than at the start."""
    return GcState(now_s=now_s, num_young=young, num_blocks=BLOCKS + grown, is_quiet=is_quiet)


class Cycle:
    """A reference cycle, which only a collection frees."""

    def __init__(self) -> None:
        self.reference = self


def _make_unreachable_cycle() -> "weakref.ref[Cycle]":
    """Return a weak reference, which returns None when it is called after the cycle was freed."""
    return weakref.ref(Cycle())


def test_few_new_objects_need_no_collection(schedule: CollectionSchedule) -> None:
    assert schedule.choose_due(_state(young=MIN_YOUNG - 1)) is None


def test_each_tenth_collection_includes_the_middle_generation(schedule: CollectionSchedule) -> None:
    dues = [schedule.choose_due(_state(young=MIN_YOUNG)) for _ in range(2 * YOUNG_PER_MIDDLE)]

    assert dues == 2 * ([YOUNG] * (YOUNG_PER_MIDDLE - 1) + [Generation.MIDDLE])


def test_costly_young_collections_bring_forward_a_middle_one(
    schedule: CollectionSchedule,
) -> None:
    dues = []
    for _ in range(6):
        dues.append(schedule.choose_due(_state(young=MIN_YOUNG)))
        if dues[-1] is YOUNG:
            schedule.on_collected_young(cost_s=MAX_YOUNG_COST_S / 2)

    assert dues == 2 * [YOUNG, YOUNG, Generation.MIDDLE]


def test_a_quiet_period_triggers_a_full_collection(schedule: CollectionSchedule) -> None:
    quiet_states = [
        _state(now_s, grown=MIN_GROWN_BLOCKS, is_quiet=True) for now_s in (0.0, QUIET_S)
    ]

    assert [schedule.choose_due(state) for state in quiet_states] == [None, FULL]


def test_an_interrupted_quiet_period_starts_again(schedule: CollectionSchedule) -> None:
    grown = MIN_GROWN_BLOCKS
    schedule.choose_due(_state(0.0, grown=grown, is_quiet=True))
    schedule.choose_due(_state(QUIET_S / 2, grown=grown, is_quiet=False))

    due = schedule.choose_due(_state(QUIET_S, grown=grown, is_quiet=True))

    assert due is None


def test_a_moment_with_many_new_objects_is_not_quiet(schedule: CollectionSchedule) -> None:
    grown = MIN_GROWN_BLOCKS
    for now_s in (0.0, QUIET_S):
        schedule.choose_due(_state(now_s, young=MIN_YOUNG, grown=grown, is_quiet=True))

    assert schedule.choose_due(_state(2 * QUIET_S, grown=grown, is_quiet=True)) is None


def test_a_long_quiet_period_has_one_full_collection(schedule: CollectionSchedule) -> None:
    schedule.choose_due(_state(0.0, grown=MIN_GROWN_BLOCKS, is_quiet=True))
    schedule.choose_due(_state(QUIET_S, grown=MIN_GROWN_BLOCKS, is_quiet=True))
    schedule.on_collected_all(num_blocks=BLOCKS, cost_s=0.0)

    later_states = [_state(factor * QUIET_S, is_quiet=True) for factor in range(2, 20)]

    assert {schedule.choose_due(state) for state in later_states} == {None}


def test_a_costly_full_collection_needs_a_longer_quiet_period(
    schedule: CollectionSchedule,
) -> None:
    schedule.on_collected_all(num_blocks=BLOCKS, cost_s=QUIET_S)
    schedule.choose_due(_state(0.0, grown=MIN_GROWN_BLOCKS, is_quiet=True))

    dues = [
        schedule.choose_due(_state(now_s, grown=MIN_GROWN_BLOCKS, is_quiet=True))
        for now_s in (2 * QUIET_S, 10 * QUIET_S)
    ]

    # The required quiet time is ten times the duration of the last full collection.
    assert dues == [None, FULL]


def test_strong_growth_forces_a_full_collection(schedule: CollectionSchedule) -> None:
    assert schedule.choose_due(_state(grown=MAX_GROWN_BLOCKS - 1)) is not FULL
    assert schedule.choose_due(_state(grown=MAX_GROWN_BLOCKS)) is FULL


def test_growth_is_measured_from_the_smallest_number_of_blocks(
    schedule: CollectionSchedule,
) -> None:
    schedule.choose_due(_state(grown=-BLOCKS // 2))

    assert schedule.choose_due(_state(grown=MAX_GROWN_BLOCKS - BLOCKS // 2)) is FULL


@pytest.mark.usefixtures("_disabled_interpreter_gc")
def test_a_young_cycle_is_freed_by_the_next_tick() -> None:
    collector = GcScheduler(FakeClock(), is_quiet=lambda: False)
    collector.tick()
    # The many new lists make a young collection due.
    cycle, kept_lists = _make_unreachable_cycle(), [[number] for number in range(2 * MIN_YOUNG)]
    assert cycle() is not None

    collector.tick()

    assert cycle() is None
    assert len(kept_lists) == 2 * MIN_YOUNG  # this use keeps the lists alive until here


@pytest.mark.usefixtures("_disabled_interpreter_gc")
def test_an_old_cycle_is_freed_in_a_quiet_period() -> None:
    clock = FakeClock()
    collector = GcScheduler(clock, is_quiet=lambda: True)
    cycles = [Cycle() for _ in range(MIN_GROWN_BLOCKS // 2)]  # each has two blocks or more
    gc.collect(Generation.MIDDLE)  # after this, the cycles are in the oldest generation
    first_cycle = weakref.ref(cycles[0])
    clock.pass_s(COUNT_EVERY_S)
    collector.tick()
    cycles.clear()
    assert first_cycle() is not None

    clock.pass_s(QUIET_S)
    collector.tick()

    assert first_cycle() is None


@pytest.mark.usefixtures("_disabled_interpreter_gc")
async def test_the_collector_runs_beside_other_tasks() -> None:
    collecting = asyncio.create_task(GcScheduler(FakeClock(), is_quiet=lambda: False).run())
    # The many new lists make a young collection due.
    cycle, kept_lists = _make_unreachable_cycle(), [[number] for number in range(2 * MIN_YOUNG)]

    await wait_until(lambda: cycle() is None, timeout_s=50 * TICK_S)

    collecting.cancel()
    await asyncio.gather(collecting, return_exceptions=True)
    assert cycle() is None
    assert len(kept_lists) == 2 * MIN_YOUNG  # this use keeps the lists alive until here


def test_the_interpreters_collector_is_disabled_during_the_block() -> None:
    with disabled_gc():
        assert not gc.isenabled()

    assert gc.isenabled()


def test_existing_objects_are_frozen() -> None:
    new_objects = [[number] for number in range(1000)]
    already_frozen = gc.get_freeze_count()

    with disabled_gc():
        # Not exact: objects that were already frozen may be freed.
        assert gc.get_freeze_count() - already_frozen > len(new_objects) / 2
