"""Operations that request the erasure of a user or a tenant.

A request destroys encryption keys and ends the user's access at once. Soon after, the worker erases
the rows in batches (tenants.compliance.data_subjects.erasure_worker).
"""

import secrets
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId, UserId, uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict
from tenants.base.permissions import Permission, Role
from tenants.base.validation.text import require_reason
from tenants.compliance.data_subjects.erasure_tombstones import (
    ErasureTombstone,
    write_erasure_tombstone_on_commit,
)
from tenants.compliance.data_subjects.export_bundle import find_subject
from tenants.identity.member_lifecycle import end_membership, require_another_owner
from tenants.models import Erasure, LegalHold, Membership, Tenant
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.privacy.content_capture.erasure import (
    ContentErasureReason,
    request_content_erasure,
)
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor
from tenants.security.encryption.operations import DestroyedKey, shred_scope
from tenants.security.encryption.operations import shred_tenant as shred_keys

_SECRET_BYTES: Final = 32  # of the secret from which pseudonyms are derived


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    user_id: UserId
    reason: str
    # True: raise Conflict if a legal hold applies. False: erase only data that is not on hold.
    is_rejected_under_hold: bool = False
    # The ID of the erasure that is repeated after a restore; such an erasure may remove the last
    # owner. None: a new erasure.
    repeated_erasure_id: uuid.UUID | None = None


def request_user_erasure(
    *, actor: Actor, erasure_request: ErasureRequest, now: datetime
) -> uuid.UUID:
    """Request the erasure of a user, and return the erasure's ID.

    The membership ends, and captured content becomes unreadable at once. Raises Forbidden,
    InvalidValue and NotFound. Raises Conflict for the last owner, for a user who is being or was
    erased, and under a legal hold if `is_rejected_under_hold` is set.
    """
    actor.require(Permission.ERASE_DATA_SUBJECTS)
    reason = require_reason(erasure_request.reason)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        subject = find_subject(tenant_id=actor.tenant_id, user_id=erasure_request.user_id)
        if erasure_request.is_rejected_under_hold and find_legal_holds(
            actor.tenant_id, subject.user_id
        ):
            raise Conflict("This person's data is under a legal hold. Release the hold first.")
        _end_membership(actor, erasure_request, now)
        request_content_erasure(
            actor=actor,
            user_id=erasure_request.user_id,
            reason=ContentErasureReason.ERASED,
            now=now,
        )
        keys = shred_scope(tenant_id=actor.tenant_id, scope=f"user:{subject.user_id}", now=now)
        tombstone = ErasureTombstone(
            subject.user_id, erasure_request.repeated_erasure_id or uuid7()
        )
        _create_erasure(actor, tombstone, reason, keys, now)
        _record_change(
            actor, "data_subject.erasure_requested", f"user:{subject.user_id}", reason, now
        )
        return tombstone.erasure_id


def request_tenant_erasure(
    *, actor: Actor, reason: str, now: datetime, repeated_erasure_id: uuid.UUID | None = None
) -> uuid.UUID:
    """Request the erasure of a closed tenant, and return the erasure's ID.

    The tenant's encrypted data becomes unreadable at once. `repeated_erasure_id` has the same
    meaning as in ErasureRequest. Raises Forbidden and InvalidValue. Raises Conflict for a tenant
    that is not closed, is on hold, or is being or was erased.
    """
    actor.require_platform()
    reason = require_reason(reason)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        row = Tenant.objects.get(id=actor.tenant_id)
        if row.status != TenantStatus.CLOSED:
            raise Conflict(
                "{slug} is {status}. You can erase only closed tenants.",
                slug=row.slug,
                status=TenantStatus(row.status),
            )
        if find_legal_holds(actor.tenant_id, None):
            raise Conflict("This tenant's data is under a legal hold. Release the hold first.")
        if Erasure.objects.filter(tenant_id=actor.tenant_id, user_id=None).exists():
            raise Conflict("The erasure of {slug} was already requested.", slug=row.slug)
        keys = shred_keys(tenant_id=actor.tenant_id, now=now)
        # This empties the tenant's prefix cache.
        Tenant.objects.filter(id=actor.tenant_id).update(cache_epoch=F("cache_epoch") + 1)
        tombstone = ErasureTombstone(None, repeated_erasure_id or uuid7())
        _create_erasure(actor, tombstone, reason, keys, now)
        _record_change(actor, "tenant.erasure_requested", f"tenant:{row.slug}", reason, now)
        return tombstone.erasure_id


def find_legal_holds(tenant_id: TenantId, user_id: uuid.UUID | None) -> list[LegalHold]:
    """Return the holds in force that apply to the user; `user_id` None: all holds of the tenant.

    Must run inside the tenant's scope.
    """
    holds = LegalHold.objects.filter(tenant_id=tenant_id, released_at=None)
    if user_id is not None:
        holds = holds.filter(Q(user_id=user_id) | Q(user_id=None))
    return list(holds.order_by("id"))


def _end_membership(actor: Actor, erasure_request: ErasureRequest, now: datetime) -> None:
    """End the membership, unless it has already ended.

    Raises Forbidden, and Conflict for the last owner or an erased user.
    """
    user_id = erasure_request.user_id
    membership = Membership.objects.get(tenant_id=actor.tenant_id, user_id=uuid.UUID(user_id))
    # A user who joined again after an erasure has an open membership, and can be erased again.
    if membership.erased_at is not None and membership.ended_at is not None:
        raise Conflict("This person's data was already erased.")
    if membership.ended_at is not None:
        return
    if membership.role == Role.OWNER:
        actor.require(Permission.WRITE_OWNERS)
        if erasure_request.repeated_erasure_id is None:
            require_another_owner(actor, user_id)
    end_membership(actor=actor, user_id=user_id, now=now)


def _create_erasure(
    actor: Actor,
    tombstone: ErasureTombstone,
    reason: str,
    keys: list[DestroyedKey],
    now: datetime,
) -> None:
    try:
        with transaction.atomic():
            Erasure.objects.create(
                tenant_id=actor.tenant_id,
                id=tombstone.erasure_id,
                user_id=tombstone.user_id,
                reason=reason,
                requested_by_id=actor.user_id,
                secret=secrets.token_bytes(_SECRET_BYTES),
                keys=[_describe_key(key) for key in keys],
                counts={},
                legal_hold_ids=[],
                requested_at=now,
            )
    except IntegrityError as error:
        raise Conflict("This person's data is already being erased.") from error
    write_erasure_tombstone_on_commit(actor.tenant_id, tombstone)


def _describe_key(key: DestroyedKey) -> dict[str, Any]:
    return {"id": str(key.key_id), "fingerprint": key.fingerprint, "scope": key.scope}


def _record_change(actor: Actor, action: str, target: str, reason: str, now: datetime) -> None:
    record_change(
        actor=actor, action=action, target=target, change=(None, None), reason=reason, now=now
    )
