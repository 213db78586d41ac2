"""Celery tasks of usage records and rollups. Each task can safely run twice.

`caret.celery` has the tasks' queues and intervals.
"""

import os
import socket

from celery import shared_task
from django.utils import timezone

from tenants.base.redis_connection import connect_to_redis
from tenants.usage.ingestion import operations as ingestion
from tenants.usage.ingestion.redis_stream import UsageStream
from tenants.usage.rollups import operations as rollups


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def ingest_usage() -> None:
    consumer = f"{socket.gethostname()}-{os.getpid()}"
    ingestion.ingest_all_entries(UsageStream(connect_to_redis(), consumer=consumer))


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def roll_up_usage() -> None:
    stream = UsageStream(connect_to_redis(), consumer="roll-up")
    rollups.roll_up_all_tenants(arrived_until=stream.find_arrived_until(now=timezone.now()))
