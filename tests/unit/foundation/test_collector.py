"""The garbage collector: cycles are freed soon, full collections run when idle, memory is
bounded."""

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
    install_gc_scheduler,
)
from tests.fakes.clock import FakeClock
from tests.fakes.polling import until

BLOCKS = 1_000_000
FULL, YOUNG = Generation.FULL, Generation.YOUNG


@pytest.fixture
def schedule() -> CollectionSchedule:
    return CollectionSchedule(num_blocks=BLOCKS)


@pytest.fixture
def _replaced() -> Iterator[None]:
    with install_gc_scheduler():
        yield


def _moment(
    now_s: float = 0.0, *, young: int = 0, grown: int = 0, is_quiet: bool = False
) -> GcState:
    return GcState(now_s=now_s, num_young=young, num_blocks=BLOCKS + grown, is_quiet=is_quiet)


class Knot:
    """A reference cycle, which only a collection frees."""

    def __init__(self) -> None:
        self.itself = self


def _untied_knot() -> "weakref.ref[Knot]":
    return weakref.ref(Knot())


def test_where_nothing_was_left_nothing_is_collected(schedule: CollectionSchedule) -> None:
    assert schedule.find_due(_moment(young=MIN_YOUNG - 1)) is None


def test_each_tenth_collection_takes_in_what_the_others_left(schedule: CollectionSchedule) -> None:
    dues = [schedule.find_due(_moment(young=MIN_YOUNG)) for _ in range(2 * YOUNG_PER_MIDDLE)]

    assert dues == 2 * ([YOUNG] * (YOUNG_PER_MIDDLE - 1) + [Generation.MIDDLE])


def test_what_young_collections_had_much_to_look_at_is_taken_in_sooner(
    schedule: CollectionSchedule,
) -> None:
    dues = []
    for _ in range(6):
        dues.append(schedule.find_due(_moment(young=MIN_YOUNG)))
        if dues[-1] is YOUNG:
            schedule.on_collected_young(cost_s=MAX_YOUNG_COST_S / 2)

    assert dues == 2 * [YOUNG, YOUNG, Generation.MIDDLE]


def test_silence_is_used_to_look_at_everything(schedule: CollectionSchedule) -> None:
    silence = [_moment(now_s, grown=MIN_GROWN_BLOCKS, is_quiet=True) for now_s in (0.0, QUIET_S)]

    assert [schedule.find_due(moment) for moment in silence] == [None, FULL]


def test_a_silence_that_was_broken_begins_anew(schedule: CollectionSchedule) -> None:
    grown = MIN_GROWN_BLOCKS
    schedule.find_due(_moment(0.0, grown=grown, is_quiet=True))
    schedule.find_due(_moment(QUIET_S / 2, grown=grown, is_quiet=False))

    assert schedule.find_due(_moment(QUIET_S, grown=grown, is_quiet=True)) is None


def test_a_moment_in_which_much_is_made_is_not_quiet(schedule: CollectionSchedule) -> None:
    grown = MIN_GROWN_BLOCKS
    for now_s in (0.0, QUIET_S):
        schedule.find_due(_moment(now_s, young=MIN_YOUNG, grown=grown, is_quiet=True))

    assert schedule.find_due(_moment(2 * QUIET_S, grown=grown, is_quiet=True)) is None


def test_in_a_long_silence_everything_is_looked_at_once(schedule: CollectionSchedule) -> None:
    schedule.find_due(_moment(0.0, grown=MIN_GROWN_BLOCKS, is_quiet=True))
    schedule.find_due(_moment(QUIET_S, grown=MIN_GROWN_BLOCKS, is_quiet=True))
    schedule.on_collected_all(num_blocks=BLOCKS, cost_s=0.0)

    later = [_moment(now_s * QUIET_S, is_quiet=True) for now_s in range(2, 20)]

    assert {schedule.find_due(moment) for moment in later} == {None}


def test_the_dearer_the_last_time_the_longer_the_silence_that_is_waited_for(
    schedule: CollectionSchedule,
) -> None:
    schedule.on_collected_all(num_blocks=BLOCKS, cost_s=QUIET_S)
    schedule.find_due(_moment(0.0, grown=MIN_GROWN_BLOCKS, is_quiet=True))

    dues = [
        schedule.find_due(_moment(now_s, grown=MIN_GROWN_BLOCKS, is_quiet=True))
        for now_s in (2 * QUIET_S, 10 * QUIET_S)
    ]

    assert dues == [None, FULL]


def test_without_silence_growth_forces_a_full_collection(schedule: CollectionSchedule) -> None:
    assert schedule.find_due(_moment(grown=MAX_GROWN_BLOCKS - 1)) is not FULL
    assert schedule.find_due(_moment(grown=MAX_GROWN_BLOCKS)) is FULL


def test_growth_counts_from_the_least_that_was_held(schedule: CollectionSchedule) -> None:
    schedule.find_due(_moment(grown=-BLOCKS // 2))

    assert schedule.find_due(_moment(grown=MAX_GROWN_BLOCKS - BLOCKS // 2)) is FULL


@pytest.mark.usefixtures("_replaced")
def test_a_cycle_among_much_that_is_new_goes_with_the_next_tick() -> None:
    collector = GcScheduler(FakeClock(), is_quiet=lambda: False)
    collector.tick()
    knot, kept = _untied_knot(), [[number] for number in range(2 * MIN_YOUNG)]
    assert knot() is not None

    collector.tick()

    assert knot() is None
    assert len(kept) == 2 * MIN_YOUNG


@pytest.mark.usefixtures("_replaced")
def test_a_cycle_that_grew_old_goes_in_silence() -> None:
    clock = FakeClock()
    collector = GcScheduler(clock, is_quiet=lambda: True)
    knots = [Knot() for _ in range(MIN_GROWN_BLOCKS // 2)]  # each has two blocks or more
    gc.collect(Generation.MIDDLE)
    first = weakref.ref(knots[0])
    clock.pass_s(COUNT_EVERY_S)
    collector.tick()
    knots.clear()
    assert first() is not None

    clock.pass_s(QUIET_S)
    collector.tick()

    assert first() is None


@pytest.mark.usefixtures("_replaced")
async def test_it_collects_by_itself_while_the_loop_runs() -> None:
    collecting = asyncio.create_task(GcScheduler(FakeClock(), is_quiet=lambda: False).run())
    knot, kept = _untied_knot(), [[number] for number in range(2 * MIN_YOUNG)]

    await until(lambda: knot() is None, timeout_s=50 * TICK_S)

    collecting.cancel()
    await asyncio.gather(collecting, return_exceptions=True)
    assert knot() is None
    assert len(kept) == 2 * MIN_YOUNG


def test_the_interpreter_s_collector_rests_and_comes_back() -> None:
    with install_gc_scheduler():
        assert not gc.isenabled()
        assert gc.get_freeze_count() > 0

    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
