"""Cleanup of export jobs.

For a failed, cancelled or expired job, the encryption key is destroyed first, which makes its
objects unreadable. Then the objects are deleted. For a finished job, only the parts are deleted:
the file stays until it expires.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Q

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.worker.failure_log import FailureLog
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.jobs.progress import (
    parse_members,
    reset_progress,
    serialize_members,
)
from tenants.compliance.exports.jobs.state_machine import TERMINAL, JobEvent, JobState, advance
from tenants.models import ExportJob, ExportObject
from tenants.security.authorization.directory import list_tenants
from tenants.security.encryption.operations import shred_scope

_BATCH: Final = 500  # objects of a job in one transaction


def clean_up_exports(*, now: datetime) -> None:
    """Clean up the jobs of all tenants. The failure of one tenant is logged."""
    for tenant_id in list_tenants().values():
        with FailureLog("exports.not_cleaned_up", tenant_id=tenant_id):
            clean_up_tenant_exports(tenant_id=tenant_id, now=now)


def clean_up_tenant_exports(*, tenant_id: TenantId, now: datetime) -> None:
    """Expire the files that are due, and delete objects that are no longer needed.

    Raises errors of the storage.
    """
    with tenant_scope(tenant_id):
        jobs = ExportJob.objects.filter(tenant_id=tenant_id, objects_deleted_at=None)
        jobs.filter(state=JobState.FINISHED, expires_at__lte=now).update(
            state=advance(JobState.FINISHED, JobEvent.EXPIRE)
        )
        # A worker may still run a cancelled job. It notices the cancellation at its next step and
        # stops writing. So a job whose claim has not expired is left to a later clean-up.
        idle = jobs.filter(Q(claimed_until=None) | Q(claimed_until__lte=now))
        ended_ids = list(idle.filter(state__in=TERMINAL).values_list("id", flat=True))
        finished_ids = list(jobs.filter(state=JobState.FINISHED).values_list("id", flat=True))
    for export_id in ended_ids:
        _clean_up_job(tenant_id, export_id, now)
    for export_id in finished_ids:
        # The parts, and objects that were never completely stored.
        _delete_job_objects(tenant_id, export_id, ~Q(pack_index=None) | Q(stored_at=None))


def expire_finished_exports(*, tenant_id: TenantId, now: datetime) -> None:
    """Expire all finished exports, because any of them may contain data of an erased user.

    Running jobs start again, and the rows that they have read are deleted from the object store.
    Raises errors of the storage.
    """
    with tenant_scope(tenant_id):
        object_ids = _restart_running_jobs(tenant_id, now)
        # Runs after the restart of running jobs, to include a job that has finished meanwhile.
        finished = ExportJob.objects.filter(tenant_id=tenant_id, state=JobState.FINISHED)
        finished.update(expires_at=now)
    # The database rows stay until the job's clean-up, because the worker of a restarted job may
    # still be storing an object.
    for object_id in object_ids:
        sealed_objects.delete_object(tenant_id, object_id)
    clean_up_tenant_exports(tenant_id=tenant_id, now=now)


def _restart_running_jobs(tenant_id: TenantId, now: datetime) -> list[UUID]:
    """Restart running jobs, and return the IDs of their objects.

    Must run inside the tenant's scope. The worker of a restarted job loses its claim, and stops at
    its next step. The encryption keys of running and ended jobs are destroyed. So their objects
    become unreadable, including an object that the worker is storing now.
    """
    jobs = ExportJob.objects.filter(tenant_id=tenant_id, objects_deleted_at=None)
    rows = jobs.filter(state__in=(JobState.RUNNING, *TERMINAL)).select_for_update().order_by("id")
    running_jobs = [row for row in rows if row.state == JobState.RUNNING]
    for row in running_jobs:
        jobs.filter(id=row.id).update(
            members=serialize_members(reset_progress(parse_members(row.members))),
            rows_done=0,
            started_at=None,
            claimed_until=None,
            num_attempts=0,
        )
    for row in rows:  # ended jobs, too: their clean-up may wait for a worker
        shred_scope(tenant_id=tenant_id, scope=sealed_objects.build_export_scope(row.id), now=now)
    objects = ExportObject.objects.filter(
        tenant_id=tenant_id, export_id__in=[row.id for row in running_jobs]
    )
    objects.update(stored_at=None)
    return list(objects.values_list("id", flat=True))


def _clean_up_job(tenant_id: TenantId, export_id: UUID, now: datetime) -> None:
    shred_scope(tenant_id=tenant_id, scope=sealed_objects.build_export_scope(export_id), now=now)
    _delete_job_objects(tenant_id, export_id, Q())
    with tenant_scope(tenant_id):
        ExportJob.objects.filter(tenant_id=tenant_id, id=export_id).update(objects_deleted_at=now)


def _delete_job_objects(tenant_id: TenantId, export_id: UUID, condition: Q) -> None:
    """Delete a job's objects whose database rows match the condition.

    An object is deleted before its database row. After a crash the row remains for another attempt.
    """
    while True:
        with tenant_scope(tenant_id):
            rows = ExportObject.objects.filter(condition, tenant_id=tenant_id, export_id=export_id)
            object_ids = list(rows.order_by("number", "id").values_list("id", flat=True)[:_BATCH])
        if not object_ids:
            return
        _delete_objects(tenant_id, object_ids)


def _delete_objects(tenant_id: TenantId, object_ids: Sequence[UUID]) -> None:
    for object_id in object_ids:
        sealed_objects.delete_object(tenant_id, object_id)
    with tenant_scope(tenant_id):
        ExportObject.objects.filter(tenant_id=tenant_id, id__in=object_ids).delete()
