"""Celery tasks of retention, content capture, idempotency and the retrieval index.

Each task can safely run twice. `caret.celery` has the tasks' queues and intervals.
"""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from caret.contracts.captured_content import ContentSealer
from caret.contracts.retrieval import RetrievalSealer
from caret.foundation.clock import SystemClock
from tenants.base.redis_connection import connect_to_redis
from tenants.privacy.content_capture import erasure as content_erasure
from tenants.privacy.content_capture import ingestion as content_ingestion
from tenants.privacy.idempotency import operations as idempotency
from tenants.privacy.retention import purge
from tenants.privacy.retrieval_index import erasure as index_erasure
from tenants.privacy.retrieval_index import worker
from tenants.privacy.retrieval_index.embeddings import EmbeddingEngine
from tenants.privacy.retrieval_index.redis_streams import RetrievalStreams


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def delete_expired_idempotency_records() -> None:
    idempotency.delete_expired_records(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def purge_due() -> None:
    purge.purge_due(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def run_retrieval_worker() -> None:
    if settings.RETRIEVAL:
        worker.run_worker(
            worker.WorkerContext(
                streams=RetrievalStreams(connect_to_redis()),
                sealer=RetrievalSealer(settings.ROOT_SECRET),
                embedder=EmbeddingEngine(settings.EMBEDDINGS_URL, model=settings.EMBEDDINGS_MODEL),
                clock=SystemClock(),
            )
        )


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def clean_up_retrieval_index() -> None:
    index_erasure.clean_up_index(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def ingest_content() -> None:
    sealer = ContentSealer(settings.ROOT_SECRET)
    content_ingestion.ingest_content(connect_to_redis(), sealer, now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def clean_up_content() -> None:
    content_erasure.clean_up_content(now=timezone.now())
