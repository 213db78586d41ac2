"""Erasure of captured content.

If all content of a user is erased, the encryption key of this content is destroyed, so the content
is unreadable at once. If only some objects are erased, for example at the end of their retention,
the key stays, because the other objects need it. Objects and rows are deleted soon after the
request. A ContentErasure row remains as a record of the erasure.

    requested (row, objects marked) -> deleted in batches -> finished, certified
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import structlog
from django.db.models import Count, QuerySet, Sum
from django.utils.translation import gettext_noop

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.worker.failure_log import FailureLog
from tenants.models import ContentErasure, ContentObject, Tenant
from tenants.policy.data_classes import DATA_CLASSES, DataClass
from tenants.policy.queries import load_active_policy
from tenants.privacy.consent.queries import find_users_with_possible_content
from tenants.privacy.content_capture import object_store
from tenants.privacy.retention.certificates import issue_certificate
from tenants.privacy.retention.rules_in_force import load_hold_periods
from tenants.privacy.retention.tables import RetentionTable
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor, build_system_actor
from tenants.security.authorization.directory import list_tenants
from tenants.security.encryption.operations import DestroyedKey, shred_scope
from tenants.security.encryption.queries import find_destruction_proofs

BATCH: Final = 100  # objects whose rows are deleted in one transaction
# If an object is not stored after this time, its worker was killed, or the storage failed.
MAX_UNSTORED: Final = timedelta(hours=1)

# Legal holds delay only erasures at the end of retention. A withdrawal erases content even during a
# hold, because the content was stored by consent only.
CONTENT_TABLE: Final = RetentionTable(ContentObject, time_field="created_at", user_field="user_id")

logger = structlog.get_logger(__name__)


class ContentErasureReason(StrEnum):
    WITHDRAWN = "withdrawn"  # the user or the tenant withdrew consent
    NO_CONSENT = "no_consent"  # found without consent, for example after a backup was restored
    RETENTION = "retention"  # the retention period is over
    ERASED = "erased"  # all data of the user or of the tenant is erased
    UNFINISHED = "unfinished"  # never completely stored


def build_key_scope(user_id: UserId) -> str:
    """Return the scope of the encryption keys of a user's content.

    It is below the user's own scope. Shredding the user's scope destroys these keys, too.
    """
    return f"user:{user_id}/content"


def request_content_erasure(
    *, actor: Actor, user_id: UserId, reason: ContentErasureReason, now: datetime
) -> None:
    """Make a user's content unreadable and mark it for deletion.

    The tenant's row must be locked. If the user's consent ends, call this in the transaction that
    ends it. Creates no ContentErasure for a user who has neither content nor a key.
    """
    with tenant_scope(actor.tenant_id):
        shredded = shred_scope(tenant_id=actor.tenant_id, scope=build_key_scope(user_id), now=now)
        objects = _list_unmarked(actor.tenant_id).filter(user_id=user_id)
        _request_erasure_of_objects(
            actor, objects, user_id=user_id, reason=reason, shredded=shredded, now=now
        )


def request_erasure_of_all_content(*, tenant_id: TenantId, now: datetime) -> None:
    """Request the erasure of all users' content.

    Must run inside the tenant's scope, with the tenant's row locked.
    """
    user_ids = _list_unmarked(tenant_id).order_by("user_id").values_list("user_id", flat=True)
    for user_id in list(user_ids.distinct()):
        request_content_erasure(
            actor=build_system_actor(tenant_id),
            user_id=UserId(str(user_id)),
            reason=ContentErasureReason.ERASED,
            now=now,
        )


def exclude_from_training(*, tenant_id: TenantId, user_ids: Iterable[UserId]) -> None:
    """Exclude the users' stored content from training."""
    with tenant_scope(tenant_id):
        _list_unmarked(tenant_id).filter(user_id__in=list(user_ids)).update(is_for_training=False)


def erase_requested_content(*, tenant_id: TenantId, now: datetime) -> int:
    """Delete the objects and rows whose erasure was requested. Return the number of objects.

    Then issues a certificate for each finished erasure. If the storage fails, deleted objects stay
    deleted, and the next run continues. Raises the exceptions of the storage.
    """
    num_erased = 0
    while ids := _list_object_ids_to_erase(tenant_id):
        for object_id in ids:
            object_store.delete_object(tenant_id, object_id)
        with tenant_scope(tenant_id):
            ContentObject.objects.filter(tenant_id=tenant_id, id__in=ids).delete()
        num_erased += len(ids)
    _finish_erasures(tenant_id, now)
    return num_erased


def clean_up_content(*, now: datetime) -> None:
    """Request and complete erasures for all tenants.

    Covers objects whose retention has ended, whose consent is missing or whose upload was never
    completed. A failure of one tenant does not stop the others.
    """
    for tenant_id in list_tenants().values():
        with FailureLog("content.erasure_failed", tenant_id=tenant_id):
            _clean_up_content_of_tenant(tenant_id, now)


def _clean_up_content_of_tenant(tenant_id: TenantId, now: datetime) -> None:
    _request_due_erasures(tenant_id, now)
    num_erased = erase_requested_content(tenant_id=tenant_id, now=now)
    if num_erased:
        logger.info("content.erased", tenant_id=tenant_id, objects=num_erased)


def _request_due_erasures(tenant_id: TenantId, now: datetime) -> None:
    actor = build_system_actor(tenant_id)
    with tenant_scope(tenant_id):
        # A lazy queryset: each use leaves out the objects that were marked before.
        unmarked_objects = _list_unmarked(tenant_id)
        if not unmarked_objects.exists():
            return
        row = Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        policy = load_active_policy(tenant_id=tenant_id)
        is_closed = row.status == TenantStatus.CLOSED
        consenting_users = (
            set()
            if is_closed
            else find_users_with_possible_content(tenant_id=tenant_id, policy=policy)
        )
        users_with_content = {
            UserId(str(user_id))
            for user_id in unmarked_objects.values_list("user_id", flat=True).distinct()
        }
        for user_id in sorted(users_with_content - consenting_users):
            request_content_erasure(
                actor=actor, user_id=user_id, reason=ContentErasureReason.NO_CONSENT, now=now
            )
        # Without content capture in the policy, no user consents: all objects were marked above.
        if policy.content_capture is not None:
            expired_objects = unmarked_objects.filter(
                created_at__lt=now - timedelta(days=policy.content_capture.retention_days)
            )
            erasable_objects = CONTENT_TABLE.exclude_held(
                expired_objects, load_hold_periods(tenant_id=tenant_id)
            )
            _request_erasure_of_objects(
                actor, erasable_objects, reason=ContentErasureReason.RETENTION, now=now
            )
        unfinished_objects = unmarked_objects.filter(
            stored_at=None, created_at__lt=now - MAX_UNSTORED
        )
        _request_erasure_of_objects(
            actor, unfinished_objects, reason=ContentErasureReason.UNFINISHED, now=now
        )


def _request_erasure_of_objects(
    actor: Actor,
    objects: QuerySet[ContentObject],
    *,
    reason: ContentErasureReason,
    now: datetime,
    user_id: UserId | None = None,
    shredded: Iterable[DestroyedKey] = (),
) -> None:
    """Create a ContentErasure with an audit entry, and mark its objects for deletion.

    Does nothing if there are neither objects nor shredded keys.
    """
    totals = objects.aggregate(objects=Count("id"), items=Sum("num_items"), bytes=Sum("num_bytes"))
    keys = [
        {"id": str(key.key_id), "fingerprint": key.fingerprint, "scope": key.scope or ""}
        for key in shredded
    ]
    if not totals["objects"] and not keys:
        return
    erasure = ContentErasure.objects.create(
        tenant_id=actor.tenant_id,
        user_id=user_id,
        reason=reason,
        num_objects=totals["objects"],
        num_items=totals["items"] or 0,
        num_bytes=totals["bytes"] or 0,
        keys=keys,
        requested_at=now,
    )
    objects.update(erasure_id=erasure.id)
    record_change(
        actor=actor,
        action="content.erasure_requested",
        target=f"erasure:{erasure.id}",
        change=(None, {"objects": erasure.num_objects, "user": user_id}),
        reason=reason.value,
        now=now,
    )


def _list_unmarked(tenant_id: TenantId) -> QuerySet[ContentObject]:
    """Return the objects whose erasure was not requested, including those not stored yet."""
    return ContentObject.objects.filter(tenant_id=tenant_id, erasure_id=None)


def _list_object_ids_to_erase(tenant_id: TenantId) -> list[UUID]:
    with tenant_scope(tenant_id):
        rows = ContentObject.objects.filter(tenant_id=tenant_id, erasure_id__isnull=False)
        return list(rows.order_by("id").values_list("id", flat=True)[:BATCH])


def _finish_erasures(tenant_id: TenantId, now: datetime) -> None:
    with tenant_scope(tenant_id):
        unfinished_erasures = ContentErasure.objects.filter(tenant_id=tenant_id, finished_at=None)
        remaining_objects = ContentObject.objects.filter(
            tenant_id=tenant_id, erasure_id__isnull=False
        )
        finished = unfinished_erasures.exclude(
            id__in=remaining_objects.values("erasure_id")
        ).order_by("requested_at", "id")
        for erasure in finished:
            issue_certificate(tenant_id=tenant_id, facts=_describe_erasure(erasure), now=now)
            ContentErasure.objects.filter(tenant_id=tenant_id, id=erasure.id).update(
                finished_at=now
            )


def _describe_erasure(erasure: ContentErasure) -> dict[str, Any]:
    """Return the facts of a certificate.

    For each destroyed key, Caret tries once more to open its canary: a known text that was sealed
    with the key. If this fails, the key is lost.
    """
    return {
        "data_class": DataClass.CONTENT.value,
        "surface": DATA_CLASSES[DataClass.CONTENT].surface,
        "method": gettext_noop("crypto-shredding and deletion")
        if erasure.keys
        else gettext_noop("deletion"),
        "reason": erasure.reason,
        "user_id": None if erasure.user_id is None else str(erasure.user_id),
        "deleted_objects": erasure.num_objects,
        "deleted_items": erasure.num_items,
        "keys": [_read_evidence(TenantId(str(erasure.tenant_id)), key) for key in erasure.keys],
        "requested_at": erasure.requested_at.isoformat(),
    }


def _read_evidence(tenant_id: TenantId, key: dict[str, str]) -> dict[str, Any]:
    proof = next(
        proof
        for proof in find_destruction_proofs(tenant_id=tenant_id, scope=key["scope"])
        if str(proof.key_id) == key["id"]
    )
    return {
        "id": key["id"],
        "fingerprint": proof.fingerprint,
        "destroyed_at": None if proof.destroyed_at is None else proof.destroyed_at.isoformat(),
        "opens": proof.opens,
    }
