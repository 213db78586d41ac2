"""Readiness of the control plane's dependencies: Postgres and Redis."""

import redis
import structlog
from asgiref.sync import sync_to_async
from django.db import Error, connections

from tenants.base.redis_connection import connect

logger = structlog.get_logger(__name__)


async def is_ready() -> bool:
    """Return whether Postgres and Redis answer.

    The check runs on its own thread and closes the connection of that thread. The connections of
    requests stay open.
    """
    return await sync_to_async(_query_database, thread_sensitive=False)()


def _query_database() -> bool:
    try:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT 1")
        connect().ping()
    except (Error, redis.RedisError) as error:
        logger.warning("console.not_ready", reason=type(error).__name__)
        return False
    finally:
        connections["default"].close()
    return True
