"""Audit entries of sign-ins that failed at an identity provider.

Anybody can send a response that is rejected, so entries are limited to MAX_ENTRIES an hour for each
reason. The process log contains all (`sign_in.provider_failed`).
"""

from datetime import datetime
from typing import Final
from uuid import uuid4

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor

MAX_ENTRIES: Final = 10
_HOUR_S: Final = 3600


def record_refused_sign_in(
    *, tenant_id: TenantId, reason: str, address: str, now: datetime
) -> None:
    """Record a rejected sign-in. `reason` is one of a fixed set. Raises redis.RedisError."""
    if not _is_within_bound(tenant_id, reason):
        return
    platform = Actor(tenant_id, None, Role.OWNER, address, request_id=str(uuid4()))
    with tenant_scope(tenant_id):
        record_change(
            actor=platform,
            action="sign_in.refused",
            target="identity_provider",
            change=(None, {"reason": reason}),
            now=now,
        )


def _is_within_bound(tenant_id: TenantId, reason: str) -> bool:
    name = f"caret:refused-sign-ins:{tenant_id}:{reason}"
    pipeline = connect().pipeline(transaction=True)
    pipeline.set(name, 0, ex=_HOUR_S, nx=True)
    pipeline.incr(name)
    return int(pipeline.execute()[1]) <= MAX_ENTRIES
