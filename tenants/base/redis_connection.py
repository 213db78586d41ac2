"""The control plane's connection to Redis."""

from functools import cache

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

# A commit waits for its publication: what does not answer by then is left to the republication.
_TIMEOUT_S = 1.0


@cache
def connect() -> redis.Redis:
    """One pool a process; redis-py makes it anew in a forked worker."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
        # For a connection that a restart has closed; redis-py's own default waits for seconds.
        retry=Retry(NoBackoff(), 1),
    )
