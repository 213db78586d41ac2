"""Health check of the Celery worker: Celery's own ping, without Caret's application."""

import os
from collections.abc import Mapping
from pathlib import Path

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from caret.foundation.broker_url import broker_from_redis_url
from caret.local.paths import EmbeddedPaths

_TIMEOUT_S = 0.5


def worker_answers(paths: EmbeddedPaths, *, environment: Mapping[str, str], worker: str) -> bool:
    url = _redis_url(paths, environment=environment)
    with Celery(broker=broker_from_redis_url(url), set_as_current=False) as asker:
        try:
            return bool(asker.control.ping(destination=[worker], timeout=_TIMEOUT_S, limit=1))
        except (OperationalError, RedisError, OSError):  # kombu passes on some of Redis's errors
            return False


def _redis_url(paths: EmbeddedPaths, *, environment: Mapping[str, str]) -> str:
    if url := environment.get("REDIS_URL"):
        return url
    file = environment.get("REDIS_URL_FILE") or os.fspath(paths.redis_url)
    return Path(file).read_text().strip()
