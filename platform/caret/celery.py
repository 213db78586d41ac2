"""The worker's Celery application: `celery -A caret.celery worker --beat`.

`task_routes` assigns each task to a queue. The worker starts only with a database role that is
bound by row-level security, and with the root keys.
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
# Django's system checks would import all URLs of the console and the API. The import takes three
# seconds, and neither worker nor beat needs it. StartupChecks has the checks that a worker needs.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("caret")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    [
        *("tenants.billing", "tenants.compliance", "tenants.fleet", "tenants.identity"),
        *("tenants.privacy", "tenants.security", "tenants.usage"),
    ]
)

app.conf.task_queues = [
    Queue(name)  # type: ignore[no-untyped-call]
    for name in (
        *("ingest", "snapshots", "retrieval", "billing"),
        *("audit", "metrics", "content", "retention", "exports"),
    )
]
app.conf.task_default_queue = "snapshots"
app.conf.task_routes = {
    "tenants.billing.tasks.deliver_budget_alerts": {"queue": "billing"},
    "tenants.billing.tasks.issue_invoices": {"queue": "billing"},
    "tenants.billing.tasks.rate_usage": {"queue": "billing"},
    "tenants.billing.tasks.report_to_stripe": {"queue": "billing"},
    "tenants.compliance.tasks.clean_up_exports": {"queue": "exports"},
    "tenants.compliance.tasks.close_due_tenants": {"queue": "retention"},
    "tenants.compliance.tasks.deliver_audit_entries": {"queue": "audit"},
    "tenants.compliance.tasks.pseudonymize_late_records": {"queue": "retention"},
    "tenants.compliance.tasks.run_due_erasures": {"queue": "retention"},
    "tenants.compliance.tasks.run_export_jobs": {"queue": "exports"},
    "tenants.compliance.tasks.run_long_export_jobs": {"queue": "exports"},
    "tenants.compliance.tasks.write_missing_tombstones": {"queue": "retention"},
    "tenants.fleet.tasks.build_public_code_index": {"queue": "exports"},
    "tenants.fleet.tasks.count_pool_usage": {"queue": "metrics"},
    "tenants.fleet.tasks.republish_snapshots": {"queue": "snapshots"},
    "tenants.fleet.tasks.refresh_started_plans": {"queue": "metrics"},
    "tenants.fleet.tasks.scrape_gateways": {"queue": "metrics"},
    "tenants.identity.tasks.delete_expired_sessions": {"queue": "retention"},
    "tenants.identity.tasks.mail_reset_links": {"queue": "snapshots"},
    "tenants.identity.tasks.process_leak_reports": {"queue": "snapshots"},
    "tenants.identity.tasks.revoke_idle_keys": {"queue": "snapshots"},
    "tenants.identity.tasks.send_trial_reminders": {"queue": "snapshots"},
    "tenants.privacy.tasks.clean_up_content": {"queue": "content"},
    "tenants.privacy.tasks.clean_up_retrieval_index": {"queue": "retrieval"},
    "tenants.privacy.tasks.delete_expired_idempotency_records": {"queue": "snapshots"},
    "tenants.privacy.tasks.ingest_content": {"queue": "content"},
    "tenants.privacy.tasks.purge_due": {"queue": "retention"},
    "tenants.privacy.tasks.run_retrieval_worker": {"queue": "retrieval"},
    "tenants.security.tasks.sign_audit_heads": {"queue": "audit"},
    "tenants.usage.tasks.ingest_usage": {"queue": "ingest"},
    "tenants.usage.tasks.roll_up_usage": {"queue": "metrics"},
}
app.conf.task_create_missing_queues = False
# The schedule is kept in memory, because two beats could conflict over a file. A restart of beat
# restarts all intervals. So no interval is longer than a few hours: a task with an interval of a
# day would never run if beat were restarted every day.
app.conf.beat_scheduler = "tenants.base.worker.beat_scheduler:OneWaitingRunScheduler"
app.conf.beat_schedule = {
    # All times are seconds. A run of a task expires if no worker starts it in time. While a run
    # waits, beat sends no other run of this task. So tasks with an interval of seconds may wait for
    # 30 s, in which even a busy worker reaches them. If a killed worker loses a message, the next
    # run also waits for this time.
    "ingest-usage": {
        "task": "tenants.usage.tasks.ingest_usage",
        "schedule": 1.0,
        "options": {"expires": 30.0},
    },
    "republish-snapshots": {
        "task": "tenants.fleet.tasks.republish_snapshots",
        "schedule": 5.0,
        "options": {"expires": 30.0},
    },
    "run-retrieval-worker": {
        "task": "tenants.privacy.tasks.run_retrieval_worker",
        "schedule": 1.0,
        "options": {"expires": 30.0},
    },
    "process-leak-reports": {
        "task": "tenants.identity.tasks.process_leak_reports",
        "schedule": 5.0,
        "options": {"expires": 30.0},
    },
    "build-public-code-index": {
        "task": "tenants.fleet.tasks.build_public_code_index",
        "schedule": 5.0,
        "options": {"expires": 30.0},
    },
    # A user waits for the e-mail.
    "mail-reset-links": {
        "task": "tenants.identity.tasks.mail_reset_links",
        "schedule": 1.0,
        "options": {"expires": 30.0},
    },
    "revoke-idle-keys": {
        "task": "tenants.identity.tasks.revoke_idle_keys",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "ingest-content": {
        "task": "tenants.privacy.tasks.ingest_content",
        "schedule": 2.0,
        "options": {"expires": 30.0},
    },
    # Withdrawn content is unreadable at once; this task deletes its objects.
    "clean-up-content": {
        "task": "tenants.privacy.tasks.clean_up_content",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "delete-expired-idempotency-records": {
        "task": "tenants.privacy.tasks.delete_expired_idempotency_records",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "delete-expired-sessions": {
        "task": "tenants.identity.tasks.delete_expired_sessions",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    # Retention is counted in days, so an interval of hours is short enough.
    "purge-due": {
        "task": "tenants.privacy.tasks.purge_due",
        "schedule": 6 * 3600.0,
        "options": {"expires": 6 * 3600.0},
    },
    "close-due-tenants": {
        "task": "tenants.compliance.tasks.close_due_tenants",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "send-trial-reminders": {
        "task": "tenants.identity.tasks.send_trial_reminders",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    # An erasure request destroys the encryption keys at once; this task deletes the rows.
    "run-due-erasures": {
        "task": "tenants.compliance.tasks.run_due_erasures",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    # A gateway that was disconnected delivers its journal late. It may contain records of users who
    # were erased in the meantime.
    "pseudonymize-late-records": {
        "task": "tenants.compliance.tasks.pseudonymize_late_records",
        "schedule": 6 * 3600.0,
        "options": {"expires": 6 * 3600.0},
    },
    # A tombstone is written when an encryption key is destroyed or an erasure is requested. This
    # task writes the tombstones that could not be written then.
    "write-missing-tombstones": {
        "task": "tenants.compliance.tasks.write_missing_tombstones",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "clean-up-retrieval-index": {
        "task": "tenants.privacy.tasks.clean_up_retrieval_index",
        "schedule": 900.0,
        "options": {"expires": 900.0},
    },
    "deliver-budget-alerts": {
        "task": "tenants.billing.tasks.deliver_budget_alerts",
        "schedule": 30.0,
        "options": {"expires": 60.0},
    },
    "issue-invoices": {
        "task": "tenants.billing.tasks.issue_invoices",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "report-to-stripe": {
        "task": "tenants.billing.tasks.report_to_stripe",
        "schedule": 60.0,
        "options": {"expires": 120.0},
    },
    "rate-usage": {
        "task": "tenants.billing.tasks.rate_usage",
        "schedule": 15.0,
        "options": {"expires": 30.0},
    },
    # The task signs new heads once an hour. It runs more often, because a restart of beat restarts
    # the intervals.
    "sign-audit-heads": {
        "task": "tenants.security.tasks.sign_audit_heads",
        "schedule": 300.0,
        "options": {"expires": 300.0},
    },
    # An hour is aggregated again after new records of it arrive. Reports may be a minute old.
    "roll-up-usage": {
        "task": "tenants.usage.tasks.roll_up_usage",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "run-export-jobs": {
        "task": "tenants.compliance.tasks.run_export_jobs",
        "schedule": 2.0,
        "options": {"expires": 30.0},
    },
    "run-long-export-jobs": {
        "task": "tenants.compliance.tasks.run_long_export_jobs",
        "schedule": 2.0,
        "options": {"expires": 30.0},
    },
    "clean-up-exports": {
        "task": "tenants.compliance.tasks.clean_up_exports",
        "schedule": 300.0,
        "options": {"expires": 300.0},
    },
    "scrape-gateways": {
        "task": "tenants.fleet.tasks.scrape_gateways",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    # A plan that starts today may include other models.
    "refresh-started-plans": {
        "task": "tenants.fleet.tasks.refresh_started_plans",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    # Earlier days are counted again, too: outcomes arrive up to half an hour late, and records of a
    # disconnected gateway even later.
    "count-pool-usage": {
        "task": "tenants.fleet.tasks.count_pool_usage",
        "schedule": 300.0,
        "options": {"expires": 300.0},
    },
    "deliver-audit-entries": {
        "task": "tenants.compliance.tasks.deliver_audit_entries",
        "schedule": 5.0,
        "options": {"expires": 30.0},
    },
}


class StartupChecks(bootsteps.Step):  # type: ignore[misc]  # celery has no types
    """Prevents the start of a worker with a wrong database role or without the root keys.

    The role must not bypass tenant isolation, and the root keys must decrypt the tenant keys.
    """

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        # Imported here: the settings must be loaded first.
        from caret.foundation.postgres.roles import require_rls_bound_role
        from tenants.security.encryption.startup_check import require_root_keys

        require_rls_bound_role()
        require_root_keys()
        super().__init__(parent, **kwargs)


app.steps["worker"].add(StartupChecks)


@setup_logging.connect  # type: ignore[untyped-decorator]  # keeps Celery from configuring logging
def _configure_logging(**_: Any) -> None:
    configure_logging("worker")
    # At INFO, these loggers write three lines for each scheduled task.
    for name in ("celery.beat", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)


_began_s: Final[dict[str, float]] = {}  # start times of this process's tasks, by task ID


@task_prerun.connect  # type: ignore[untyped-decorator]
def _on_task_started(task_id: str, task: Task, **_: Any) -> None:
    # Imported here: the settings must be loaded first.
    from tenants.base.worker.beat_scheduler import mark_started

    _began_s[task_id] = time.monotonic()
    with suppress(redis.RedisError):  # the mark expires
        mark_started(task.name)


@task_postrun.connect  # type: ignore[untyped-decorator]
def _on_task_finished(task_id: str, task: Task, state: str | None, **_: Any) -> None:
    # Imported here: the settings must be loaded first.
    from tenants.base.redis_connection import connect_to_redis
    from tenants.base.worker.metrics import TaskCounts

    took_s = time.monotonic() - _began_s.pop(task_id, time.monotonic())
    name = task.name.rpartition(".")[2]
    with suppress(redis.RedisError):  # without Redis, this worker gets no tasks, either
        TaskCounts(connect_to_redis()).on_finished(
            name, took_s=took_s, has_failed=state != "SUCCESS", now_s=time.time()
        )


@beat_init.connect  # type: ignore[untyped-decorator]
def _serve_worker_metrics(**_: Any) -> None:
    """Serve the metrics of all workers from the beat process, of which there is only one."""
    from tenants.base.redis_connection import connect_to_redis
    from tenants.base.worker.metrics import WorkerMetricsCollector

    registry = CollectorRegistry()
    collector = WorkerMetricsCollector(
        connect_to_redis(), queues=[queue.name for queue in app.conf.task_queues]
    )
    # The collector has no method `describe`, so registering it does not read from Redis, which may
    # be down.
    registry.register(collector)
    serve_metrics(registry)
