"""Notifications to console processes that a user's access may have changed.

When a process receives a notification, it checks the access of its open WebSockets again.

    caret:console:access-changed   channel   a session key or a user ID

Another channel (caret.contracts.snapshot.CHANGE_CHANNEL) announces the tenants whose memberships,
roles, policies or status have changed. A lost message only delays the check, because WebSockets are
also checked periodically.
"""

from typing import Final

import redis
import structlog
from django.db import transaction

from tenants.base.redis_connection import connect_to_redis

ACCESS_CHANGED: Final = "caret:console:access-changed"
logger = structlog.get_logger(__name__)


def announce_access_change(*ids: str) -> None:
    """Publish session keys or user IDs after the commit of the transaction."""
    transaction.on_commit(lambda: _publish_change(ids), robust=True)


def _publish_change(ids: tuple[str, ...]) -> None:
    pipeline = connect_to_redis().pipeline(transaction=False)
    for session_or_user_id in ids:
        pipeline.publish(ACCESS_CHANGED, session_or_user_id)
    try:
        pipeline.execute()
    except redis.RedisError as error:
        # Not raised: the change is committed, and WebSockets are also checked periodically.
        logger.warning("access_changes.not_published", reason=type(error).__name__)
