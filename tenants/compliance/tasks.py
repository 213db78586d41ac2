"""Celery tasks of exports, data subject requests, audit sinks and the closing of tenants.

Each can safely run twice. `caret.celery` sets the queue and the interval of each task.
"""

from celery import shared_task
from django.utils import timezone

from tenants.base import tombstones
from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tenants.compliance import tenant_closing
from tenants.compliance.audit_sinks import delivery_worker
from tenants.compliance.data_subjects import erasure_tombstones, erasure_worker
from tenants.compliance.exports.jobs import cleanup
from tenants.compliance.exports.jobs import run as job_runner
from tenants.compliance.exports.jobs.claim import JobLane
from tenants.security.encryption import destroyed_keys


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def close_due_tenants() -> None:
    with redis_lock(connect_to_redis(), "tenant-closing") as has_lock:
        if has_lock:
            tenant_closing.close_due_tenants(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def run_due_erasures() -> None:
    with redis_lock(connect_to_redis(), "erasures") as has_lock:
        if has_lock:
            erasure_worker.run_due_erasures(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def pseudonymize_late_records() -> None:
    erasure_worker.pseudonymize_late_records(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def write_missing_tombstones() -> None:
    tombstones.initialize_store()
    destroyed_keys.write_missing_key_tombstones(now=timezone.now())
    erasure_tombstones.write_missing_erasure_tombstones(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def deliver_audit_entries() -> None:
    with redis_lock(connect_to_redis(), "audit-push") as has_lock:
        if has_lock:
            delivery_worker.deliver_due_entries(clock=timezone.now)


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def run_export_jobs() -> None:
    with redis_lock(connect_to_redis(), "exports") as has_lock:
        if has_lock:
            job_runner.run_due_jobs(clock=timezone.now)


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def run_long_export_jobs() -> None:
    with redis_lock(connect_to_redis(), "long-exports") as has_lock:
        if has_lock:
            job_runner.run_due_jobs(clock=timezone.now, lane=JobLane.LONG)


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def clean_up_exports() -> None:
    cleanup.clean_up_exports(now=timezone.now())
