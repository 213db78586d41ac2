"""At most one run of a periodic task waits for a worker, so old runs cannot block a queue."""

import secrets
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import redis
from celery import Celery

import caret.celery
from tenants.base.redis_connection import connect_to_redis
from tenants.base.worker.beat_scheduler import OneWaitingRunScheduler, mark_started, mark_waiting

QUEUE = f"planted-{secrets.token_hex(4)}"


@pytest.fixture
def task() -> str:
    return f"planted.{secrets.token_hex(4)}"


@pytest.fixture
def scheduler(task: str) -> Iterator[OneWaitingRunScheduler]:
    """Return a scheduler whose only task is always due. Its messages stay in the queue QUEUE."""
    app = Celery("beat", broker=caret.celery.app.conf.broker_url, set_as_current=False)
    app.conf.beat_schedule = {
        "entry": {"task": task, "schedule": 0.0, "options": {"expires": 30.0, "queue": QUEUE}}
    }
    scheduler = OneWaitingRunScheduler(app, lazy=True)
    scheduler.setup_schedule()
    yield scheduler
    connect_to_redis().delete(QUEUE)


def _count_messages() -> int:
    return connect_to_redis().llen(QUEUE)


def _tick(scheduler: OneWaitingRunScheduler) -> None:
    for _ in range(5):
        scheduler.tick()


def test_no_second_run_of_a_task_waits(scheduler: OneWaitingRunScheduler) -> None:
    _tick(scheduler)

    assert _count_messages() == 1


def test_the_next_run_is_sent_after_a_worker_has_started_one(
    scheduler: OneWaitingRunScheduler, task: str
) -> None:
    _tick(scheduler)

    caret.celery._on_task_started(task_id="1", task=SimpleNamespace(name=task))

    _tick(scheduler)
    assert _count_messages() == 2


def test_the_mark_expires_a_second_before_the_message(task: str) -> None:
    """Otherwise a task whose interval is its expiry time could skip a run that is due just then."""
    assert mark_waiting(task, expires_s=30.0)

    (key,) = connect_to_redis().keys(f"*{task}")
    assert 28_000 < connect_to_redis().pttl(key) <= 29_000
    assert not mark_waiting(task, expires_s=30.0)


def test_tasks_do_not_wait_for_each_other(task: str) -> None:
    assert mark_waiting(task, expires_s=30.0)
    assert mark_waiting(f"{task}2", expires_s=30.0)

    mark_started(task)

    assert not mark_waiting(f"{task}2", expires_s=30.0)


def test_without_redis_the_scheduler_leaves_the_error_to_celery(
    monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    unreachable = redis.Redis(host="localhost", port=1)
    monkeypatch.setattr("tenants.base.worker.beat_scheduler.connect_to_redis", lambda: unreachable)

    assert mark_waiting(task, expires_s=30.0)


def test_a_busy_worker_reserves_no_run_that_an_idle_worker_could_start() -> None:
    assert caret.celery.app.conf.worker_prefetch_multiplier == 1
    assert caret.celery.app.conf.task_acks_late  # otherwise a running task would not count


def test_a_waiting_run_has_enough_time_to_be_started() -> None:
    for name, entry in caret.celery.app.conf.beat_schedule.items():
        assert entry["options"]["expires"] >= max(30.0, entry["schedule"]), name
