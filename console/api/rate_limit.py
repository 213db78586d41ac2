"""Rate limit of the API for each caller, counted in Redis.

The limit protects the console's database from programs that send too many requests. If Redis is
unreachable, no request is limited, because an outage of Redis must not lock administrators out.
"""

from typing import Final

import structlog
from redis import RedisError

from console.api.problems import Problem, ProblemRaised
from tenants.base.redis_connection import connect_to_redis

MAX_PER_MINUTE: Final = 600
WINDOW_S: Final = 60
_log = structlog.get_logger()


def count_request(caller: str) -> None:
    """Count a request of the caller in the current window of WINDOW_S.

    `caller` identifies the caller, such as an Actor.rate_limit_key. Raises ProblemRaised if the
    caller sent more than MAX_PER_MINUTE in the window.
    """
    name = f"caret:throttle:api:{caller}"
    try:
        pipeline = connect_to_redis().pipeline(transaction=True)
        # The first request of a window creates the counter, which expires with the window.
        pipeline.set(name, 0, ex=WINDOW_S, nx=True)
        pipeline.incr(name)
        pipeline.ttl(name)
        _, count, left_s = pipeline.execute()
    except RedisError:
        _log.warning("api.request_not_counted")
        return
    if int(count) > MAX_PER_MINUTE:
        # `left_s` is rounded, so it is 0 at the very end of the window.
        raise ProblemRaised(_build_problem(max(1, int(left_s))))


def _build_problem(left_s: int) -> Problem:
    return Problem(
        429,
        "too_many_requests",
        f"You can send at most {MAX_PER_MINUTE} requests per minute. Try again in {left_s} s.",
        retry_after_s=left_s,
    )
