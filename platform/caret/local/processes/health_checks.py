"""Health checks of the Celery worker and of local HTTP servers."""

import http.client
import os
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from caret.foundation.broker_url import broker_from_redis_url
from caret.local.paths import EmbeddedPaths

_PING_TIMEOUT_S = 0.5  # of the worker
_HTTP_TIMEOUT_S = 2.0
# Ignores the proxies of the environment, which cannot reach the loopback address of this machine.
_DIRECT_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def is_worker_responding(
    paths: EmbeddedPaths, *, environment: Mapping[str, str], worker: str
) -> bool:
    url = _redis_url(paths, environment=environment)
    with Celery(broker=broker_from_redis_url(url), set_as_current=False) as celery:
        try:
            return bool(celery.control.ping(destination=[worker], timeout=_PING_TIMEOUT_S, limit=1))
        except (OperationalError, RedisError, OSError):  # kombu does not wrap all Redis errors
            return False


def _redis_url(paths: EmbeddedPaths, *, environment: Mapping[str, str]) -> str:
    if url := environment.get("REDIS_URL"):
        return url
    file = environment.get("REDIS_URL_FILE") or os.fspath(paths.redis_url)
    return Path(file).read_text().strip()


def is_responding(url: str) -> bool:
    """Return whether the server responds with status 200."""
    try:
        with _DIRECT_OPENER.open(url, timeout=_HTTP_TIMEOUT_S) as response:
            return bool(response.status == http.HTTPStatus.OK)
    except (OSError, http.client.HTTPException):  # refused, reset, timed out, or an error status
        return False
