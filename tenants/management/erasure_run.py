"""The run of an erasure that `manage.py erase_tenant` or `manage.py erase_user` has requested."""

import uuid
from datetime import datetime

import redis
from django.core.management.base import CommandError

from caret.foundation.ids import TenantId
from tenants.compliance.data_subjects.erasure_worker import run_erasure


def run_requested_erasure(*, tenant_id: TenantId, erasure_id: uuid.UUID, now: datetime) -> str:
    """Run the erasure until it is finished, and return the output. Raises CommandError."""
    try:
        is_finished = run_erasure(tenant_id=tenant_id, erasure_id=erasure_id, now=now)
    except (OSError, redis.RedisError) as error:  # of the object store, or of Redis
        raise CommandError(
            "Not everything is erased: the encryption keys are destroyed, but then Redis or the"
            f" object store failed ({error}). The worker erases the rest. You can also run the"
            " command again."
        ) from error
    if not is_finished:
        raise CommandError(
            "Not everything is erased: new records keep arriving. The worker erases the rest."
        )
    return f"Erased. The tenant's erasure {erasure_id} has a deletion certificate."
