"""Tells the console's processes whose access may have changed, so that open sockets check anew.

    caret:console:access-changed   channel   a session's key or a user's ID

Tenants have a channel already (caret.contracts.snapshot.CHANGED): memberships, roles, policies and
statuses are published there. A message that is lost costs little: sockets check now and then
without one.
"""

from typing import Final

import redis
import structlog
from django.db import transaction

from tenants.base.redis_connection import connect

ACCESS_CHANGED: Final = "caret:console:access-changed"
logger = structlog.get_logger(__name__)


def announce(*ids: str) -> None:
    """Publish keys of sessions or IDs of users once the transaction is committed."""
    transaction.on_commit(lambda: _publish(ids), robust=True)


def _publish(ids: tuple[str, ...]) -> None:
    pipeline = connect().pipeline(transaction=False)
    for each in ids:
        pipeline.publish(ACCESS_CHANGED, each)
    try:
        pipeline.execute()
    except redis.RedisError as error:
        # Anticipated: the change stands, and sockets check now and then.
        logger.warning("access_changes.not_published", reason=type(error).__name__)
