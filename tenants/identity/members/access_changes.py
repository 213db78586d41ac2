"""Notifications to console processes that a user's access may have changed.

When a process receives one, it checks the access of its open sockets again.

    caret:console:access-changed   channel   a session's key or a user's ID

Tenants have their own channel (caret.contracts.snapshot.CHANGED), which announces memberships,
roles, policies and statuses. A lost message costs little: sockets are also checked periodically.
"""

from typing import Final

import redis
import structlog
from django.db import transaction

from tenants.base.redis_connection import connect_to_redis

ACCESS_CHANGED: Final = "caret:console:access-changed"
logger = structlog.get_logger(__name__)


def announce_access_change(*ids: str) -> None:
    """Publish keys of sessions or IDs of users once the transaction is committed."""
    transaction.on_commit(lambda: _publish_change(ids), robust=True)


def _publish_change(ids: tuple[str, ...]) -> None:
    pipeline = connect_to_redis().pipeline(transaction=False)
    for session_or_user_id in ids:
        pipeline.publish(ACCESS_CHANGED, session_or_user_id)
    try:
        pipeline.execute()
    except redis.RedisError as error:
        # Expected: the change is committed, and sockets are checked periodically.
        logger.warning("access_changes.not_published", reason=type(error).__name__)
