"""The control plane's connection to Redis."""

from functools import cache

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

# After a commit, the caller waits until the snapshot is published to Redis. If Redis does not
# answer in time, the task republish_snapshots publishes the snapshot later.
_TIMEOUT_S = 1.0


@cache
def connect_to_redis() -> redis.Redis:
    """Return the process's client. Its connection pool starts afresh in a forked worker."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
        # Retry once, for a connection that a restart of Redis has closed. redis-py's default
        # retries for seconds.
        retry=Retry(NoBackoff(), 1),
    )
