"""Replay after a restore: requests the erasures that the restored backup does not contain.

Run it before any process of Caret starts. A tenant can be shredded only when it has no legal hold.
If the restored backup contains holds of a shredded tenant, they were therefore released after the
backup, and are released again. A user can be erased under a hold, so the replay of a user's erasure
releases no holds.
"""

from datetime import datetime
from typing import Final

import structlog

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import tombstones as store
from tenants.base.errors import Conflict, NotFound
from tenants.compliance.data_subjects.erasure_tombstones import (
    ErasureTombstone,
    list_newest_tombstones,
)
from tenants.compliance.data_subjects.operations import (
    ErasureRequest,
    find_legal_holds,
    request_tenant_erasure,
    request_user_erasure,
)
from tenants.identity.members.tenant_status import set_status
from tenants.models import Erasure, Tenant
from tenants.privacy.retention.operations import release_hold
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import list_tenants

_REASON: Final = "Requested after the restored backup was taken."
# The states of a tenant on the way to CLOSED, in order.
_STATES_UNTIL_CLOSED: Final = (
    TenantStatus.ACTIVE,
    TenantStatus.SUSPENDED,
    TenantStatus.CLOSING,
    TenantStatus.CLOSED,
)
logger = structlog.get_logger(__name__)


def replay_erasures(*, now: datetime) -> int:
    """Request missing erasures again, and return their number. The worker performs them.

    A second run finds none. Raises WrongStore, and errors of the storage.
    """
    store.require_store()
    return sum(
        _request_again(tenant_id, tombstone, now)
        for tenant_id in list_tenants().values()
        for tombstone in list_newest_tombstones(tenant_id)
    )


def _request_again(tenant_id: TenantId, tombstone: ErasureTombstone, now: datetime) -> bool:
    """Request one erasure again.

    Return False if the backup contains the erasure already, if it does not contain the user, or if
    the request raises Conflict.
    """
    try:
        with tenant_scope(tenant_id):
            if Erasure.objects.filter(tenant_id=tenant_id, id=tombstone.erasure_id).exists():
                return False
            if tombstone.user_id is None:
                _request_shredding(tenant_id, tombstone, now)
            else:
                user_id = UserId(str(tombstone.user_id))
                erasure_request = ErasureRequest(
                    user_id, _REASON, repeated_erasure_id=tombstone.erasure_id
                )
                request_user_erasure(
                    actor=build_system_actor(tenant_id), erasure_request=erasure_request, now=now
                )
    except (Conflict, NotFound) as error:
        logger.info("subject.erasure_not_repeated", tenant_id=tenant_id, reason=error.code)
        return False
    return True


def _request_shredding(tenant_id: TenantId, tombstone: ErasureTombstone, now: datetime) -> None:
    """Close the tenant, release its holds, and request its erasure."""
    actor = build_system_actor(tenant_id)
    current = TenantStatus(Tenant.objects.values_list("status", flat=True).get(id=tenant_id))
    later_states = _STATES_UNTIL_CLOSED[_STATES_UNTIL_CLOSED.index(current) + 1 :]
    for status in later_states:
        set_status(actor=actor, status=status, reason=_REASON, now=now)
    for hold in find_legal_holds(tenant_id, None):
        release_hold(actor=actor, hold_id=hold.id, reason=_REASON, now=now)
    request_tenant_erasure(
        actor=actor, reason=_REASON, now=now, repeated_erasure_id=tombstone.erasure_id
    )
