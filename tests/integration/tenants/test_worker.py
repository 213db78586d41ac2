"""A real Celery worker with beat, the scheduler, ingests records and builds exports by itself.

Every task has a queue, a schedule and a time limit.
"""

import time
from pathlib import Path

import caret.celery
from caret.contracts.usage import USAGE_FIELD, USAGE_STREAM, encode_records
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis
from tenants.models import Outcome
from tests.fakes.exports import start_export, view_export
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.tenants.test_ingest import outcome
from tests.stack.services import Services
from tests.stack.worker import running_worker

TIMEOUT_S = 300.0  # usually seconds, but other tests may use all cores


def test_a_record_is_ingested_by_the_schedule(services: Services, tmp_path: Path) -> None:
    company = make_company("initech", {})

    with running_worker(services, tmp_path, queue="ingest") as log:
        connect_to_redis().xadd(USAGE_STREAM, {USAGE_FIELD: encode_records([outcome(company)])})

        assert wait_for_outcome(company, timeout_s=TIMEOUT_S), log.read_text()


def test_an_export_is_built_by_the_schedule(services: Services, tmp_path: Path) -> None:
    company = make_company("initech", ACME_PEOPLE)

    with running_worker(services, tmp_path, queue="exports") as log:
        export_id = start_export(company)

        deadline = time.monotonic() + TIMEOUT_S
        while view_export(company, export_id).state != "finished" and time.monotonic() < deadline:
            time.sleep(0.2)
        assert view_export(company, export_id).state == "finished", log.read_text()


def test_every_task_has_a_queue_and_a_schedule() -> None:
    our_tasks = _list_our_tasks()
    conf = caret.celery.app.conf

    assert set(conf.task_routes) == our_tasks
    assert {route["queue"] for route in conf.task_routes.values()} == {
        queue.name for queue in conf.task_queues
    }
    assert {entry["task"] for entry in conf.beat_schedule.values()} == our_tasks


def test_budget_alerts_are_delivered_every_minute_at_least() -> None:
    schedules = {
        entry["task"]: entry["schedule"] for entry in caret.celery.app.conf.beat_schedule.values()
    }

    assert schedules["tenants.billing.tasks.deliver_budget_alerts"] <= 60


def test_users_wait_seconds_at_most_for_usage_and_exports() -> None:
    schedules = {
        entry["task"]: entry["schedule"] for entry in caret.celery.app.conf.beat_schedule.values()
    }

    assert schedules["tenants.usage.tasks.ingest_usage"] <= 5
    assert schedules["tenants.compliance.tasks.run_export_jobs"] <= 10


def test_every_task_runs_even_if_beat_is_restarted_every_day() -> None:
    """A restart begins every interval anew, so a task with an interval of a day might never run."""
    max_interval_s = 6 * 3600

    for name, entry in caret.celery.app.conf.beat_schedule.items():
        assert entry["schedule"] <= max_interval_s, name


def test_every_tasks_time_limit_is_below_the_redelivery_timeout() -> None:
    conf = caret.celery.app.conf
    redelivered_after_s = 3600  # kombu's visibility timeout

    for name in _list_our_tasks():
        task = caret.celery.app.tasks[name]
        soft = task.soft_time_limit or conf.task_soft_time_limit
        hard = task.time_limit or conf.task_time_limit
        assert 0 < soft < hard < redelivered_after_s, name


def _list_our_tasks() -> set[str]:
    caret.celery.app.loader.import_default_modules()
    return {name for name in caret.celery.app.tasks if name.startswith("tenants.")}


def wait_for_outcome(company: Company, *, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with tenant_scope(company.tenant_id):
            if Outcome.objects.exists():
                return True
        time.sleep(0.2)
    return False
