"""Closing of a tenant: final export, grace period, then deletion with a certificate.

    active, suspended --begin_closing--> closing --grace period--> closed --> erased, certificate

During the grace period, owners can download the final export. An operator can cancel the closing:
resume or suspend the tenant (`tenants.identity.members.tenant_status.set_status`). Otherwise a
worker closes the tenant at the end of the grace period, and erases it.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import redis
import structlog
from django.conf import settings

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.base.redis_connection import connect_to_redis
from tenants.base.worker.failure_log import FailureLog
from tenants.compliance.data_subjects.operations import request_tenant_erasure
from tenants.compliance.exports.definitions.definitions import PACK, PACK_MEDIA
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.jobs.operations import ExportRequest, request_final_export
from tenants.compliance.exports.jobs.state_machine import UNDER_WAY, JobState
from tenants.compliance.exports.rows import Period
from tenants.identity.members.tenant_status import set_status
from tenants.models import DeletionCertificate, Erasure, ExportJob, Tenant
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import record_read
from tenants.security.authorization.actor import Actor, build_system_actor

logger = structlog.get_logger(__name__)

MAX_GRACE_DAYS: Final = 365
_BEGINNING: Final = datetime(2020, 1, 1, tzinfo=UTC)  # older than every installation
_REASON: Final = "The grace period of closing the tenant ended."
# A tenant is closed automatically only if its final export has one of these states. While the
# export is queued or running, the tenant waits. If the export has failed, an operator must decide.
_EXPORT_DONE_STATES: Final = frozenset({JobState.FINISHED, JobState.CANCELLED, JobState.EXPIRED})
# For this time, Redis keeps the reason of a delay. It is longer than the time between two runs.
_DELAY_KEPT_S: Final = 3_600


@dataclass(frozen=True, slots=True)
class FinalExport:
    id: uuid.UUID
    state: JobState
    num_bytes: int  # 0: no file
    expires_at: datetime | None  # None: no file yet


@dataclass(frozen=True, slots=True)
class TenantClosure:
    """The progress of the closing of a tenant."""

    closes_at: datetime | None  # end of the grace period; None: not closing, or erasure requested
    final_export: FinalExport | None  # of the latest closing; None: the tenant was never closing
    is_erasing: bool  # the encryption keys are destroyed, and the data is being deleted
    erased_at: datetime | None  # None: not erased
    certificate: str | None  # the signed document; None: not erased


def begin_closing(
    *, actor: Actor, reason: str, now: datetime, grace_days: int | None = None
) -> datetime:
    """Begin to close a tenant, request its final export, and return the end of the grace period.

    The owners get an e-mail. `grace_days` None: the installation's setting. Raises Forbidden,
    InvalidValue, NotFound, Conflict.
    """
    days = settings.CLOSING_GRACE_DAYS if grace_days is None else grace_days
    if not 1 <= days <= MAX_GRACE_DAYS:
        raise InvalidValue("grace_days", "Enter 1 to {most} days.", most=MAX_GRACE_DAYS)
    closes_at = now + timedelta(days=days)
    with tenant_scope(actor.tenant_id):
        set_status(
            actor=actor,
            status=TenantStatus.CLOSING,
            reason=reason,
            now=now,
            closes_at=closes_at,
        )
        export_request = ExportRequest(PACK, PACK_MEDIA, Period(_BEGINNING, now))
        export_id = request_final_export(
            tenant_id=actor.tenant_id, export_request=export_request, now=now
        )
        Tenant.objects.filter(id=actor.tenant_id).update(final_export_id=export_id)
    return closes_at


def close_now(*, actor: Actor, reason: str, now: datetime) -> None:
    """End the grace period: close the tenant, and let the worker delete its data.

    Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    set_status(actor=actor, status=TenantStatus.CLOSED, reason=reason, now=now, closes_at=now)


def close_due_tenants(*, now: datetime) -> int:
    """Close tenants whose grace period has ended, and request their erasure.

    Return the number of tenants that are closed, and whose erasure is requested. One query if there
    is nothing to do. The failure of one tenant is logged, and does not stop the run.
    """
    due = Tenant.objects.filter(closes_at__lte=now).order_by("closes_at", "id")
    return sum(
        _close_tenant_or_log(TenantId(str(row_id)), now)
        for row_id in due.values_list("id", flat=True)
    )


def find_closure(*, tenant_id: TenantId) -> TenantClosure:
    """Return the progress of the closing, for operators.

    One query for a tenant that was never closing, and up to three more for others.
    """
    with tenant_scope(tenant_id):
        row = Tenant.objects.get(id=tenant_id)
        erasure = _find_erasure(tenant_id) if row.status == TenantStatus.CLOSED else None
        erased_at = None if erasure is None else erasure.finished_at
        return TenantClosure(
            closes_at=row.closes_at if erasure is None else None,
            final_export=_find_final_export(row),
            is_erasing=erasure is not None and erased_at is None,
            erased_at=erased_at,
            certificate=None if erased_at is None else _find_certificate(tenant_id, erased_at),
        )


def read_final_export(*, actor: Actor, now: datetime) -> Iterator[bytes]:
    """Record the read in the audit log, and return the pieces of the final export's file.

    Raises Forbidden, NotFound, Conflict.
    """
    actor.require_platform()
    with tenant_scope(actor.tenant_id):
        export = _find_final_export(Tenant.objects.get(id=actor.tenant_id))
        if export is None:
            raise NotFound("This tenant is not closing, so it has no final export.")
        if export.state is not JobState.FINISHED:
            raise Conflict(
                "The final export has no file, because its status is “{state}”.", state=export.state
            )
        object_ids = sealed_objects.list_object_ids(actor.tenant_id, export.id, pack_index=None)
        record_read(actor=actor, action="export.downloaded", target=f"export:{export.id}", now=now)
    return (
        sealed_objects.read_object(actor.tenant_id, export.id, object_id)
        for object_id in object_ids
    )


def _close_tenant_or_log(tenant_id: TenantId, now: datetime) -> bool:
    with FailureLog("tenant_closing.failed", tenant_id=tenant_id):
        try:
            return _close_tenant(tenant_id, now)
        except Conflict as error:  # a legal hold: the erasure is retried until its release
            if _store_delay_reason(tenant_id, error.message):
                logger.warning("tenant_closing.delayed", tenant_id=tenant_id, reason=error.message)
    return False


def _store_delay_reason(tenant_id: TenantId, reason: str) -> bool:
    """Store the reason of a delay, and return whether it differs from that of the last run.

    A legal hold can last for months, and the worker runs every minute. So only a new reason is
    logged. If Redis is not available, return True.
    """
    key = f"caret:closing-delay:{tenant_id}"
    try:
        last_reason = connect_to_redis().set(key, reason, ex=_DELAY_KEPT_S, get=True)
    except redis.RedisError:
        return True
    return last_reason != reason.encode()


def _close_tenant(tenant_id: TenantId, now: datetime) -> bool:
    """Close the tenant, and request its erasure. Return False if it has to wait.

    With a legal hold, the tenant is closed, but its erasure cannot be requested yet. Raises
    Conflict in this case.
    """
    actor = build_system_actor(tenant_id)
    with tenant_scope(tenant_id):
        mark_snapshot_stale(tenant_id=tenant_id)  # locks the tenant
        row = Tenant.objects.get(id=tenant_id)
        if row.closes_at is None or row.closes_at > now:
            return False  # an operator has resumed the tenant in the meantime
        if row.status == TenantStatus.CLOSING:
            export = _find_final_export(row)
            if export is not None and export.state not in _EXPORT_DONE_STATES:
                if export.state not in UNDER_WAY:
                    logger.error("tenant_closing.export_failed", tenant_id=tenant_id)
                return False
            set_status(
                actor=actor,
                status=TenantStatus.CLOSED,
                reason=_REASON,
                now=now,
                closes_at=row.closes_at,
            )
    # In a second transaction, so that the tenant stays closed if this raises Conflict.
    with tenant_scope(tenant_id):
        if not Erasure.objects.filter(tenant_id=tenant_id, user_id=None).exists():
            request_tenant_erasure(actor=actor, reason=_REASON, now=now)
        Tenant.objects.filter(id=tenant_id).update(closes_at=None)
    return True


def _find_final_export(row: Tenant) -> FinalExport | None:
    if row.final_export_id is None:
        return None
    job = ExportJob.objects.get(tenant_id=row.id, id=row.final_export_id)
    return FinalExport(job.id, JobState(job.state), job.num_bytes, job.expires_at)


def _find_erasure(tenant_id: TenantId) -> Erasure | None:
    return Erasure.objects.filter(tenant_id=tenant_id, user_id=None).order_by("id").last()


def _find_certificate(tenant_id: TenantId, erased_at: datetime) -> str | None:
    """Return the certificate that was issued at the end of the erasure."""
    rows = DeletionCertificate.objects.filter(tenant_id=tenant_id, created_at=erased_at)
    return rows.order_by("-number").values_list("document", flat=True).first()
