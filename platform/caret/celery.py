"""The worker's application: `celery -A caret.celery worker --beat`.

Every task has a queue of its own in the table below. The worker does not start
with a database role that row security would not bind, nor without the root keys.
"""

import logging
import os
import time
from contextlib import suppress
from typing import Any, Final

import redis
from celery import Celery, Task, bootsteps
from celery.signals import beat_init, setup_logging, task_postrun, task_prerun
from kombu.entity import Queue
from prometheus_client import CollectorRegistry

from caret.foundation.log_config import configure_logging
from caret.foundation.metrics_server import serve_metrics

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "caret.settings")
# They would load every address of console and API: three seconds of a start, for nothing that a
# worker or a beat needs. What a worker must not start without is in StartupChecks below.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("caret")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["tenants"])

app.conf.task_queues = [
    Queue(name)  # type: ignore[no-untyped-call]
    for name in (
        *("ingest", "snapshots", "retrieval", "billing"),
        *("audit", "metrics", "telemetry", "retention", "exports"),
    )
]
app.conf.task_default_queue = "snapshots"
app.conf.task_routes = {
    "tenants.tasks.end_leaked_keys": {"queue": "snapshots"},
    "tenants.tasks.erase_subjects": {"queue": "retention"},
    "tenants.tasks.forget_answers": {"queue": "snapshots"},
    "tenants.tasks.forget_expired_sessions": {"queue": "retention"},
    "tenants.tasks.ingest_usage": {"queue": "ingest"},
    "tenants.tasks.note_destroyed_keys": {"queue": "retention"},
    "tenants.tasks.purge_due": {"queue": "retention"},
    "tenants.tasks.rename_late_records": {"queue": "retention"},
    "tenants.tasks.republish_snapshots": {"queue": "snapshots"},
    "tenants.tasks.revoke_idle_keys": {"queue": "snapshots"},
    "tenants.tasks.serve_retrieval": {"queue": "retrieval"},
    "tenants.tasks.sweep_retrieval": {"queue": "retrieval"},
    "tenants.tasks.rate_usage": {"queue": "billing"},
    "tenants.tasks.sign_audit_heads": {"queue": "audit"},
    "tenants.tasks.roll_up_usage": {"queue": "metrics"},
    "tenants.tasks.deliver_budget_alerts": {"queue": "billing"},
    "tenants.tasks.push_audit": {"queue": "audit"},
    "tenants.tasks.issue_invoices": {"queue": "billing"},
    "tenants.tasks.ingest_telemetry": {"queue": "telemetry"},
    "tenants.tasks.sweep_telemetry": {"queue": "telemetry"},
    "tenants.tasks.report_to_stripe": {"queue": "billing"},
    "tenants.tasks.build_exports": {"queue": "exports"},
    "tenants.tasks.sweep_exports": {"queue": "exports"},
    "tenants.tasks.write_long_exports": {"queue": "exports"},
    "tenants.tasks.read_gateways": {"queue": "metrics"},
    "tenants.tasks.count_pool_days": {"queue": "metrics"},
}
app.conf.task_create_missing_queues = False
# Kept in memory: intervals this short need no file that two beats could fight over.
app.conf.beat_scheduler = "caret.foundation.celery_scheduler:ClockJumpSafeScheduler"
app.conf.beat_schedule = {
    # A tick that finds no worker is worth nothing once the next one is there: it expires.
    "ingest-usage": {
        "task": "tenants.tasks.ingest_usage",
        "schedule": 1.0,
        "options": {"expires": 2.0},
    },
    "republish-snapshots": {
        "task": "tenants.tasks.republish_snapshots",
        "schedule": 5.0,
        "options": {"expires": 10.0},
    },
    "serve-retrieval": {
        "task": "tenants.tasks.serve_retrieval",
        "schedule": 1.0,
        "options": {"expires": 2.0},
    },
    "end-leaked-keys": {
        "task": "tenants.tasks.end_leaked_keys",
        "schedule": 5.0,
        "options": {"expires": 10.0},
    },
    "revoke-idle-keys": {
        "task": "tenants.tasks.revoke_idle_keys",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "ingest-telemetry": {
        "task": "tenants.tasks.ingest_telemetry",
        "schedule": 2.0,
        "options": {"expires": 4.0},
    },
    # What was withdrawn cannot be read from that moment on; here its objects go.
    "sweep-telemetry": {
        "task": "tenants.tasks.sweep_telemetry",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "forget-answers": {
        "task": "tenants.tasks.forget_answers",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "forget-expired-sessions": {
        "task": "tenants.tasks.forget_expired_sessions",
        "schedule": 24 * 3600.0,
        "options": {"expires": 24 * 3600.0},
    },
    # Days are counted, so hours would do; one purge that is under way is gone on with.
    "purge-due": {
        "task": "tenants.tasks.purge_due",
        "schedule": 6 * 3600.0,
        "options": {"expires": 6 * 3600.0},
    },
    # Keys went when it was demanded; here the rows go.
    "erase-subjects": {
        "task": "tenants.tasks.erase_subjects",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    # Of who was erased; a gateway that was cut off delivers its journal when it is back.
    "rename-late-records": {
        "task": "tenants.tasks.rename_late_records",
        "schedule": 6 * 3600.0,
        "options": {"expires": 6 * 3600.0},
    },
    # They are noted as they are destroyed, erasures as they are demanded; here what was missed.
    "note-destroyed-keys": {
        "task": "tenants.tasks.note_destroyed_keys",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "sweep-retrieval": {
        "task": "tenants.tasks.sweep_retrieval",
        "schedule": 900.0,
        "options": {"expires": 900.0},
    },
    "deliver-budget-alerts": {
        "task": "tenants.tasks.deliver_budget_alerts",
        "schedule": 30.0,
        "options": {"expires": 60.0},
    },
    "issue-invoices": {
        "task": "tenants.tasks.issue_invoices",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "report-to-stripe": {
        "task": "tenants.tasks.report_to_stripe",
        "schedule": 60.0,
        "options": {"expires": 120.0},
    },
    "rate-usage": {
        "task": "tenants.tasks.rate_usage",
        "schedule": 15.0,
        "options": {"expires": 30.0},
    },
    # Signs once an hour what has grown. More often asked, as intervals begin anew with each start.
    "sign-audit-heads": {
        "task": "tenants.tasks.sign_audit_heads",
        "schedule": 300.0,
        "options": {"expires": 300.0},
    },
    # An hour is counted anew whenever it has got records: once a minute is soon enough for reports.
    "roll-up-usage": {
        "task": "tenants.tasks.roll_up_usage",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "build-exports": {
        "task": "tenants.tasks.build_exports",
        "schedule": 2.0,
        "options": {"expires": 4.0},
    },
    "write-long-exports": {
        "task": "tenants.tasks.write_long_exports",
        "schedule": 2.0,
        "options": {"expires": 4.0},
    },
    "sweep-exports": {
        "task": "tenants.tasks.sweep_exports",
        "schedule": 300.0,
        "options": {"expires": 300.0},
    },
    "read-gateways": {
        "task": "tenants.tasks.read_gateways",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    # Outcomes come up to half an hour late, and records of a gateway that was cut off later still.
    "count-pool-days": {
        "task": "tenants.tasks.count_pool_days",
        "schedule": 300.0,
        "options": {"expires": 300.0},
    },
    "push-audit": {
        "task": "tenants.tasks.push_audit",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
}


class StartupChecks(bootsteps.Step):  # type: ignore[misc]  # celery has no types
    """Refuses to start a worker whose database role could pass the wall between tenants, or that
    could not open tenants' keys."""

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        # Imported here: settings are read once Celery has loaded them.
        from caret.foundation.postgres.roles import require_rls_bound_role
        from tenants.security.encryption.startup_check import require_root_keys

        require_rls_bound_role()
        require_root_keys()
        super().__init__(parent, **kwargs)


app.steps["worker"].add(StartupChecks)


@setup_logging.connect  # type: ignore[untyped-decorator]  # Celery's only way to leave logging alone
def _configure_logging(**_: Any) -> None:
    configure_logging("worker")
    # At INFO they write three lines for every tick.
    for name in ("celery.beat", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)


_began_s: Final[dict[str, float]] = {}  # by the task's id: of this process, under way


@task_prerun.connect  # type: ignore[untyped-decorator]
def _begins(task_id: str, **_: Any) -> None:
    _began_s[task_id] = time.monotonic()


@task_postrun.connect  # type: ignore[untyped-decorator]
def _ended(task_id: str, task: Task, state: str | None, **_: Any) -> None:
    # Imported here, as settings are read by then.
    from tenants.base.redis_connection import connect
    from tenants.base.worker_metrics import TaskCounts

    took_s = time.monotonic() - _began_s.pop(task_id, time.monotonic())
    name = task.name.rpartition(".")[2]
    with suppress(redis.RedisError):  # it is away: nothing new is asked of this worker either
        TaskCounts(connect()).on_finished(
            name, took_s=took_s, has_failed=state != "SUCCESS", now_s=time.time()
        )


@beat_init.connect  # type: ignore[untyped-decorator]
def _tell(**_: Any) -> None:
    from tenants.base.redis_connection import connect
    from tenants.base.worker_metrics import WorkerMetricsCollector

    registry = CollectorRegistry()
    watch = WorkerMetricsCollector(connect(), queues=[queue.name for queue in app.conf.task_queues])
    # Described by nothing: at the start Redis need not be there.
    registry.register(watch)
    serve_metrics(registry)
