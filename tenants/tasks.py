"""Celery tasks of the workers, one call each. They take explicit IDs and can run twice safely.

`caret.celery` has their queues and intervals.
"""

import os
import socket

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from caret.contracts.captured_content import ContentSealer
from caret.contracts.retrieval import Sealer
from caret.foundation.clock import SystemClock
from tenants.base import tombstones
from tenants.base.redis_connection import connect
from tenants.base.redis_lock import redis_lock
from tenants.base.signing_keys import signing_keys
from tenants.billing.budgets import alert_delivery
from tenants.billing.invoices import operations as invoices
from tenants.billing.rating import operations
from tenants.billing.stripe.client import HttpStripe
from tenants.billing.stripe.operations import report_all
from tenants.compliance.audit_sinks import delivery_worker
from tenants.compliance.data_subjects import erasure_tombstones, erasure_worker
from tenants.compliance.exports.jobs import cleanup as jobs_cleanup
from tenants.compliance.exports.jobs import run as jobs_run
from tenants.compliance.exports.jobs.claim import JobLane
from tenants.fleet.pools import daily_usage, installation_status, recent_scrapes
from tenants.fleet.snapshots import publisher
from tenants.identity.api_keys import leak_response
from tenants.identity.api_keys import operations as api_keys
from tenants.identity.members import sessions
from tenants.identity.passwords import reset_mail
from tenants.privacy.content_capture import erasure as content_erasure
from tenants.privacy.content_capture import ingestion as content_ingestion
from tenants.privacy.idempotency import operations as idempotency
from tenants.privacy.retention import purge
from tenants.privacy.retrieval_index import erasure, worker
from tenants.privacy.retrieval_index.embeddings import EmbeddingEngine
from tenants.privacy.retrieval_index.redis_streams import RetrievalStreams
from tenants.security.audit import signed_heads
from tenants.security.encryption import destroyed_keys
from tenants.usage.ingestion import operations as ingestion_operations
from tenants.usage.ingestion import redis_stream
from tenants.usage.rollups import operations as rollups_operations


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def ingest_usage() -> None:
    consumer = f"{socket.gethostname()}-{os.getpid()}"
    ingestion_operations.ingest_all(redis_stream.UsageStream(connect(), consumer=consumer))


@shared_task  # type: ignore[untyped-decorator]
def republish_snapshots() -> None:
    publisher.republish_stale(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def delete_expired_idempotency_records() -> None:
    idempotency.delete_expired(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def run_due_erasures() -> None:
    with redis_lock(connect(), "erasures") as is_alone:
        if is_alone:
            erasure_worker.run_due_erasures(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def pseudonymize_late_records() -> None:
    erasure_worker.pseudonymize_late_records(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def delete_expired_sessions() -> None:
    sessions.delete_expired_sessions(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def mail_reset_links() -> None:
    reset_mail.mail_requested_links(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def purge_due() -> None:
    purge.purge_due(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def write_missing_tombstones() -> None:
    tombstones.initialize_store()
    destroyed_keys.write_missing(now=timezone.now())
    erasure_tombstones.note_missed(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def run_retrieval_worker() -> None:
    if settings.RETRIEVAL:
        worker.run_worker(
            worker.WorkerContext(
                streams=RetrievalStreams(connect()),
                sealer=Sealer(settings.ROOT_SECRET),
                embedder=EmbeddingEngine(settings.EMBEDDINGS_URL, model=settings.EMBEDDINGS_MODEL),
                clock=SystemClock(),
            )
        )


@shared_task  # type: ignore[untyped-decorator]
def clean_up_retrieval_index() -> None:
    erasure.sweep(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def rate_usage() -> None:
    operations.rate_all_tenants(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def sign_audit_heads() -> None:
    signed_heads.sign_all_heads(keys=signing_keys(), now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def roll_up_usage() -> None:
    usage = redis_stream.UsageStream(connect(), consumer="roll-up")
    rollups_operations.roll_up_all(arrived_until=usage.find_arrived_until(now=timezone.now()))


@shared_task  # type: ignore[untyped-decorator]
def deliver_budget_alerts() -> None:
    alert_delivery.deliver_all_alerts(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def process_leak_reports() -> None:
    leak_response.process_leak_reports(connect(), now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def revoke_idle_keys() -> None:
    api_keys.revoke_all_idle_keys(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def deliver_audit_entries() -> None:
    with redis_lock(connect(), "audit-push") as is_alone:
        if is_alone:
            delivery_worker.deliver_due(clock=timezone.now)


@shared_task  # type: ignore[untyped-decorator]
def issue_invoices() -> None:
    invoices.issue_all(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def ingest_content() -> None:
    sealer = ContentSealer(settings.ROOT_SECRET)
    content_ingestion.ingest(connect(), sealer, now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def clean_up_content() -> None:
    content_erasure.sweep(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def run_export_jobs() -> None:
    with redis_lock(connect(), "exports") as is_alone:
        if is_alone:
            jobs_run.build_due(clock=timezone.now)


@shared_task  # type: ignore[untyped-decorator]
def run_long_export_jobs() -> None:
    with redis_lock(connect(), "long-exports") as is_alone:
        if is_alone:
            jobs_run.build_due(clock=timezone.now, lane=JobLane.LONG)


@shared_task  # type: ignore[untyped-decorator]
def clean_up_exports() -> None:
    jobs_cleanup.sweep(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def report_to_stripe() -> None:
    if settings.STRIPE_KEY is not None:
        stripe = HttpStripe(settings.STRIPE_URL, settings.STRIPE_KEY)
        report_all(stripe, now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def scrape_gateways() -> None:
    now = timezone.now()
    found = installation_status.read_installation(now=now)
    recent_scrapes.keep(connect(), found.readings, now_s=now.timestamp())
    daily_usage.record_replica_seconds(connect(), found, now=now)


@shared_task  # type: ignore[untyped-decorator]
def count_pool_usage() -> None:
    with redis_lock(connect(), "pool-days") as is_alone:
        if is_alone:
            daily_usage.count_recent_days(connect(), now=timezone.now())
