"""What is over goes: its key is shredded first, so that from then on nothing of it is read, then
its objects. Of what is finished go the parts; the file stays until it expires."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import structlog
from django.db.models import Q

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.compliance.exports.jobs import sealed_objects
from tenants.compliance.exports.jobs.progress import read_members, unread, write_members
from tenants.compliance.exports.jobs.state_machine import TERMINAL, JobEvent, JobState, advance
from tenants.models import ExportJob, ExportObject
from tenants.security.authorization.directory import list_tenants
from tenants.security.encryption.operations import shred_scope

_BATCH: Final = 500  # objects of a build in one transaction
logger = structlog.get_logger(__name__)


def sweep(*, now: datetime) -> None:
    for tenant_id in list_tenants().values():
        try:
            sweep_tenant(tenant_id=tenant_id, now=now)
        except Exception as error:  # noqa: BLE001  # one tenant's keeps no other's waiting
            logger.error("exports.not_swept", tenant_id=tenant_id, error=type(error).__name__)


def sweep_tenant(*, tenant_id: TenantId, now: datetime) -> None:
    with tenant_scope(tenant_id):
        unswept = ExportJob.objects.filter(tenant_id=tenant_id, swept_at=None)
        unswept.filter(state=JobState.FINISHED, expires_at__lte=now).update(
            state=advance(JobState.FINISHED, JobEvent.EXPIRE)
        )
        # Whoever still works at one finds out with its next step, and writes no more.
        idle = unswept.filter(Q(claimed_until=None) | Q(claimed_until__lte=now))
        over = list(idle.filter(state__in=TERMINAL).values_list("id", flat=True))
        finished = list(unswept.filter(state=JobState.FINISHED).values_list("id", flat=True))
    for build_id in over:
        _sweep_build(tenant_id, build_id, now)
    for build_id in finished:
        _delete(tenant_id, build_id, ~Q(member=None) | Q(stored_at=None))


def expire_finished(*, tenant_id: TenantId, now: datetime) -> None:
    """All at once: somebody is erased whom any of them may name. Those that are being built begin
    anew, without what they have read. Raises what the storage raises."""
    with tenant_scope(tenant_id):
        left = _begin_anew(tenant_id, now)
        # Behind those: one that was finished meanwhile is among these.
        finished = ExportJob.objects.filter(tenant_id=tenant_id, state=JobState.FINISHED)
        finished.update(expires_at=now)
    _delete_objects(tenant_id, left)
    sweep_tenant(tenant_id=tenant_id, now=now)


def _begin_anew(tenant_id: TenantId, now: datetime) -> list[UUID]:
    """Inside the tenant's scope: ids of objects that nobody reads any more. Whoever is at one of
    these builds loses it; what he still writes is sealed before the shredding, or not at all."""
    unswept = ExportJob.objects.filter(tenant_id=tenant_id, swept_at=None)
    rows = (
        unswept.filter(state__in=(JobState.RUNNING, *TERMINAL)).select_for_update().order_by("id")
    )
    building = [row for row in rows if row.state == JobState.RUNNING]
    for row in building:
        unswept.filter(id=row.id).update(
            members=write_members(unread(read_members(row.members))),
            rows_done=0,
            began_at=None,
            claimed_until=None,
            num_attempts=0,
        )
    for row in rows:  # those that are over as well: their sweep may wait for who was at them
        shred_scope(tenant_id=tenant_id, scope=sealed_objects.scope_of(row.id), now=now)
    objects = ExportObject.objects.filter(
        tenant_id=tenant_id, build_id__in=[row.id for row in building]
    )
    objects.update(stored_at=None)
    return list(objects.values_list("id", flat=True))


def _sweep_build(tenant_id: TenantId, build_id: UUID, now: datetime) -> None:
    shred_scope(tenant_id=tenant_id, scope=sealed_objects.scope_of(build_id), now=now)
    _delete(tenant_id, build_id, Q())
    with tenant_scope(tenant_id):
        ExportJob.objects.filter(tenant_id=tenant_id, id=build_id).update(swept_at=now)


def _delete(tenant_id: TenantId, build_id: UUID, which: Q) -> None:
    """The object first: killed in between, its row is there to try again."""
    while True:
        with tenant_scope(tenant_id):
            rows = ExportObject.objects.filter(which, tenant_id=tenant_id, build_id=build_id)
            object_ids = list(rows.order_by("number", "id").values_list("id", flat=True)[:_BATCH])
        if not object_ids:
            return
        _delete_objects(tenant_id, object_ids)


def _delete_objects(tenant_id: TenantId, object_ids: Sequence[UUID]) -> None:
    for object_id in object_ids:
        sealed_objects.delete(tenant_id, object_id)
    with tenant_scope(tenant_id):
        ExportObject.objects.filter(tenant_id=tenant_id, id__in=object_ids).delete()
