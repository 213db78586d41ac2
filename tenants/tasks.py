"""What workers do: one line each. Tasks take explicit ids, and a second run changes nothing.

Their queues and intervals are in caret.celery.
"""

import os
import socket

from celery import shared_task
from django.utils import timezone

from tenants.keyvalue import connect
from tenants.snapshots import publish
from tenants.usage import ingest, stream


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def ingest_usage() -> None:
    consumer = f"{socket.gethostname()}-{os.getpid()}"
    ingest.drain(stream.UsageStream(connect(), consumer=consumer))


@shared_task  # type: ignore[untyped-decorator]
def republish_snapshots() -> None:
    publish.republish_stale(now=timezone.now())
