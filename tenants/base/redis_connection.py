"""The control plane's connection to Redis."""

from functools import cache

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

# For each Redis command. Users wait for some of them, for example until a changed snapshot is
# published. If Redis does not answer in time, the task republish_snapshots publishes the snapshot
# later.
_TIMEOUT_S = 1.0


@cache
def connect_to_redis() -> redis.Redis:
    """Return the client of this process. A forked worker does not use its parent's connections."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
        # Retry once, because a restart of Redis may have closed the connection. redis-py's default
        # is to retry for seconds.
        retry=Retry(NoBackoff(), 1),
    )
