"""What workers do: one line each. Tasks take explicit ids, and a second run changes nothing.

Their queues and intervals are in caret.celery.
"""

import os
import socket

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from caret.contracts.captured_content import TelemetrySealer
from caret.contracts.retrieval import Sealer
from caret.foundation.clock import SystemClock
from tenants import noted
from tenants.alone import alone
from tenants.audit import heads
from tenants.billing.budgets import deliver
from tenants.billing.invoices import issue
from tenants.billing.rating import rate
from tenants.billing.stripe.http import HttpStripe
from tenants.billing.stripe.operations import report_all
from tenants.data_subjects import erasing
from tenants.data_subjects import noted as erasures_noted
from tenants.encryption import destroyed
from tenants.exports.builds import build, sweep
from tenants.exports.builds.claim import Lane
from tenants.idempotency import operations as idempotency
from tenants.keys import idle, leaks
from tenants.keyvalue import connect
from tenants.members import sessions
from tenants.metrics import roll_up
from tenants.pools import overview, pool_days, readings
from tenants.retention import purge
from tenants.retrieval import erasure, serve
from tenants.retrieval.embed import EmbeddingEngine
from tenants.retrieval.streams import RetrievalStreams
from tenants.siem import push
from tenants.signing_keys import signing_keys
from tenants.snapshots import publish
from tenants.telemetry import erasure as telemetry_erasure
from tenants.telemetry import ingest as telemetry_ingest
from tenants.usage import ingest, stream


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def ingest_usage() -> None:
    consumer = f"{socket.gethostname()}-{os.getpid()}"
    ingest.drain(stream.UsageStream(connect(), consumer=consumer))


@shared_task  # type: ignore[untyped-decorator]
def republish_snapshots() -> None:
    publish.republish_stale(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def forget_answers() -> None:
    idempotency.forget_answers(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def erase_subjects() -> None:
    with alone(connect(), "erasures") as is_alone:
        if is_alone:
            erasing.erase_demanded(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def rename_late_records() -> None:
    erasing.rename_late(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def forget_expired_sessions() -> None:
    sessions.forget_expired_sessions(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def purge_due() -> None:
    purge.purge_due(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def note_destroyed_keys() -> None:
    noted.mark_store()
    destroyed.note_missed(now=timezone.now())
    erasures_noted.note_missed(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def serve_retrieval() -> None:
    if settings.RETRIEVAL:
        serve.serve(
            serve.Desk(
                streams=RetrievalStreams(connect()),
                sealer=Sealer(settings.ROOT_SECRET),
                embedder=EmbeddingEngine(settings.EMBEDDINGS_URL, model=settings.EMBEDDINGS_MODEL),
                clock=SystemClock(),
            )
        )


@shared_task  # type: ignore[untyped-decorator]
def sweep_retrieval() -> None:
    erasure.sweep(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def rate_usage() -> None:
    rate.rate_all(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def sign_audit_heads() -> None:
    heads.sign_heads(keys=signing_keys(), now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def roll_up_usage() -> None:
    usage = stream.UsageStream(connect(), consumer="roll-up")
    roll_up.roll_up_all(arrived_until=usage.arrived_until(now=timezone.now()))


@shared_task  # type: ignore[untyped-decorator]
def deliver_budget_alerts() -> None:
    deliver.deliver_all(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def end_leaked_keys() -> None:
    leaks.end_leaked_keys(connect(), now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def revoke_idle_keys() -> None:
    idle.revoke_all_idle_keys(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def push_audit() -> None:
    with alone(connect(), "audit-push") as is_alone:
        if is_alone:
            push.push_due(clock=timezone.now)


@shared_task  # type: ignore[untyped-decorator]
def issue_invoices() -> None:
    issue.issue_all(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def ingest_telemetry() -> None:
    sealer = TelemetrySealer(settings.ROOT_SECRET)
    telemetry_ingest.ingest(connect(), sealer, now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def sweep_telemetry() -> None:
    telemetry_erasure.sweep(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def build_exports() -> None:
    with alone(connect(), "exports") as is_alone:
        if is_alone:
            build.build_due(clock=timezone.now)


@shared_task  # type: ignore[untyped-decorator]
def write_long_exports() -> None:
    with alone(connect(), "long-exports") as is_alone:
        if is_alone:
            build.build_due(clock=timezone.now, lane=Lane.LONG)


@shared_task  # type: ignore[untyped-decorator]
def sweep_exports() -> None:
    sweep.sweep(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def report_to_stripe() -> None:
    if settings.STRIPE_KEY is not None:
        stripe = HttpStripe(settings.STRIPE_URL, settings.STRIPE_KEY)
        report_all(stripe, now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]
def read_gateways() -> None:
    now = timezone.now()
    found = overview.read_installation(now=now)
    readings.keep(connect(), found.readings, now_s=now.timestamp())
    pool_days.note_replicas(connect(), found, now=now)


@shared_task  # type: ignore[untyped-decorator]
def count_pool_days() -> None:
    with alone(connect(), "pool-days") as is_alone:
        if is_alone:
            pool_days.count_due(connect(), now=timezone.now())
