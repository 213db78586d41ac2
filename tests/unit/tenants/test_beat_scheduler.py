"""The scheduler of periodic tasks, when the wall clock is set back while it runs.

Only the comparison of clocks in ClockJumpSafeScheduler uses the fake clock. Celery itself compares
the last run of a task with the real clock, which these tests cannot set back. So they move the last
run forward instead, and set back the fake clock to show the jump to the scheduler.
"""

from datetime import timedelta

import pytest
from celery import Celery

from tenants.base.worker.beat_scheduler import ClockJumpSafeScheduler
from tests.fakes.clock import FakeClock

HOUR_MS = 3_600_000
INTERVAL_S = 10.0


@pytest.fixture
def scheduler() -> ClockJumpSafeScheduler:
    """Return a scheduler with one task, which has just run at the first tick."""
    app = Celery("beat", set_as_current=False)
    app.conf.beat_schedule = {"entry": {"task": "task", "schedule": INTERVAL_S}}
    scheduler = ClockJumpSafeScheduler(app, lazy=True)
    scheduler.clock = FakeClock()
    scheduler.setup_schedule()
    scheduler.tick()
    return scheduler


def _fake_clock(scheduler: ClockJumpSafeScheduler) -> FakeClock:
    assert isinstance(scheduler.clock, FakeClock)
    return scheduler.clock


def _move_last_runs_an_hour_ahead(scheduler: ClockJumpSafeScheduler) -> None:
    """Change the last run of each task, as if the clock had been an hour ahead at that time."""
    for entry in scheduler.schedule.values():
        entry.last_run_at += timedelta(milliseconds=HOUR_MS)
    scheduler._heap = None  # Celery's next `tick` rebuilds it from the schedule


def test_a_task_is_due_within_its_interval_after_the_clock_is_set_back(
    scheduler: ClockJumpSafeScheduler,
) -> None:
    _move_last_runs_an_hour_ahead(scheduler)

    _fake_clock(scheduler).shift_wall_clock(by_ms=-HOUR_MS)

    seconds_until_next_tick = scheduler.tick()
    assert seconds_until_next_tick <= INTERVAL_S


def test_a_small_clock_correction_changes_nothing(scheduler: ClockJumpSafeScheduler) -> None:
    _move_last_runs_an_hour_ahead(scheduler)

    _fake_clock(scheduler).shift_wall_clock(by_ms=-500)

    # The task still waits for its interval after its last run, which is an hour ahead.
    seconds_until_next_tick = scheduler.tick()
    assert seconds_until_next_tick > INTERVAL_S
