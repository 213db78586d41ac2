"""The worker for export jobs: reads rows into encrypted parts, then writes the file from them.

    1. For each export: record the audit chain's head, and the time until which the rows are
       complete. Then read the rows in batches and store each batch as a part.
    2. Format the rows of all parts as a file, stored in encrypted pieces, and sign its proof.

A part and the job's progress with it are committed in one transaction. If a worker is killed, only
its current part is lost, and the next worker continues after the last one. The file is always
written from the beginning.

Tenants take turns: each one gets a slice of time. Files of many rows are written in a separate lane
(`claim`), so that they delay only the tenants that have requested such files.
"""

import random
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from time import monotonic
from typing import Final
from uuid import UUID

from django.db.models import F
from django.utils.translation import gettext_noop

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, DomainError, InvalidValue
from tenants.base.worker.failure_log import FailureLog
from tenants.compliance.exports.definitions.definitions import EXPORTS
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.formats.xlsx import require_row_limit
from tenants.compliance.exports.jobs.claim import (
    MAX_ATTEMPTS,
    ClaimLost,
    Clock,
    JobClaim,
    JobLane,
    choose_lane,
    claim_next_job,
)
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.jobs.files.export_file import write_file
from tenants.compliance.exports.jobs.files.parts import encode_part
from tenants.compliance.exports.jobs.progress import (
    ExportProgress,
    find_next_unread,
    parse_members,
    record_part,
    record_start,
    serialize_members,
)
from tenants.compliance.exports.jobs.state_machine import JobEvent, JobState, advance
from tenants.compliance.exports.proof import start_proof
from tenants.compliance.exports.rows import Period, RowBatch, RowQuery
from tenants.models import ExportJob, Tenant
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import list_tenants

KEPT_FOR: Final = timedelta(days=7)  # the shortest time for which a finished file is kept
MAX_ROWS: Final = 50_000_000  # of one export; an evidence pack has several
_SLICE_S: Final = 2.0  # of reading before the next tenant's turn
# No turn begins after this time: the next run continues, and other tasks run in between.
MAX_RUN_S: Final = 5.0
_TOO_MANY_ATTEMPTS: Final = gettext_noop(
    "The export could not be created. The operator's log has the details."
)


def run_due_jobs(
    *, clock: Clock, lane: JobLane = JobLane.SHORT, max_run_s: float = MAX_RUN_S
) -> None:
    """Run the jobs of all tenants in the lane, in turns.

    End when no job is left to run. Begin no further turn after `max_run_s` seconds.
    """
    deadline_s = monotonic() + max_run_s
    tenant_ids = list(list_tenants().values())
    # In a fixed order, the end of a run would always cut off the same tenants.
    random.shuffle(tenant_ids)
    while tenant_ids:
        unfinished: list[TenantId] = []
        for tenant_id in tenant_ids:
            if monotonic() >= deadline_s:
                return
            if run_slice_of_oldest_job(tenant_id, clock, lane):
                unfinished.append(tenant_id)
        tenant_ids = unfinished


def run_slice_of_oldest_job(
    tenant_id: TenantId, clock: Clock, lane: JobLane = JobLane.SHORT
) -> bool:
    """Run one slice of the tenant's oldest job in the lane.

    Return False if there is none to claim, or if the job must wait after an error. Otherwise, the
    tenant may have more to do.
    """
    with FailureLog("exports.job_failed", tenant_id=tenant_id):
        claim = claim_next_job(tenant_id, clock, lane)
        if claim is None:
            return False
        with suppress(ClaimLost):
            _run_job_or_fail(claim, lane)
        return True
    return False  # the claim is not released: the job is retried when the claim expires


def _run_job_or_fail(claim: JobClaim, lane: JobLane) -> None:
    """Run a slice of a job, and mark the job as failed after a DomainError.

    Raises ClaimLost. After any other error the job is retried.
    """
    try:
        _run_job(claim, lane)
    except DomainError as refusal:
        _fail_job(claim, refusal.message)


def _run_job(claim: JobClaim, lane: JobLane) -> None:
    """Read batches for one slice of time. When all rows are read, write the file.

    If the file must be written in the other lane, release the claim instead.
    """
    row = _read_job(claim)
    if row.num_attempts > MAX_ATTEMPTS:
        raise Conflict(_TOO_MANY_ATTEMPTS)
    members = parse_members(row.members)
    deadline_s = monotonic() + _SLICE_S
    while (pack_index := find_next_unread(members)) is not None:
        members[pack_index] = _read_batch(claim, row, members, pack_index)
        if monotonic() >= deadline_s:
            claim.release()
            return
    row = _read_job(claim)  # with the current number of rows
    if choose_lane(row) is lane:
        _finish_job(claim, row, members)
    else:
        claim.release()


def _read_job(claim: JobClaim) -> ExportJob:
    with tenant_scope(claim.tenant_id):
        return ExportJob.objects.get(tenant_id=claim.tenant_id, id=claim.export_id)


def build_row_query(row: ExportJob, claim: JobClaim) -> RowQuery:
    """Return the query of the job's rows. Its `now` is the time at which the job has started.

    The first call sets `row.started_at`. The actor is the platform: the requester's permissions are
    checked at the request and at the download.
    """
    tenant_id = TenantId(str(row.tenant_id))
    if row.started_at is None:
        row.started_at = claim.clock()
    return RowQuery(build_system_actor(tenant_id), Period(row.since, row.until), row.started_at)


def _read_batch(
    claim: JobClaim, row: ExportJob, members: Sequence[ExportProgress], pack_index: int
) -> ExportProgress:
    """Read the next batch of one export, store it as a part, and return the export's progress."""
    member, query = members[pack_index], build_row_query(row, claim)
    export = _find_export(member)
    if not member.is_begun:
        member = record_start(member, start_proof(export, query))
    batch = export.source.read(query, after=member.place)
    progress = record_part(member, num_rows=len(batch.rows), place=batch.next)
    _require_fit(row, progress)
    _store_part(
        claim,
        row,
        [*members[:pack_index], progress, *members[pack_index + 1 :]],
        pack_index,
        batch,
    )
    return progress


def _store_part(
    claim: JobClaim,
    row: ExportJob,
    members: Sequence[ExportProgress],
    pack_index: int,
    batch: RowBatch,
) -> None:
    """Store a part. Then mark it as stored and save the job's progress, in one transaction."""
    object_id: UUID | None = None
    if batch.rows:
        number = members[pack_index].num_parts - 1
        object_id = sealed_objects.store_object(
            claim, encode_part(batch.rows), pack_index=pack_index, number=number
        )
    with tenant_scope(claim.tenant_id):
        claim.update_job(
            members=serialize_members(members),
            rows_done=F("rows_done") + len(batch.rows),
            started_at=row.started_at,
            num_attempts=0,
        )
        if object_id is not None:
            sealed_objects.mark_stored(claim, object_id, claim.clock())


def _find_export(member: ExportProgress) -> Export:
    """Return the definition. Raises Conflict if it has changed since the request."""
    export = EXPORTS.get(member.definition)
    if export is None or export.version != member.version:
        raise Conflict(
            "The definition of this export has changed since you requested "
            "it. Request a new export."
        )
    return export


def _require_fit(row: ExportJob, member: ExportProgress) -> None:
    """Check that the export does not have too many rows. Raises InvalidValue."""
    if row.media == "xlsx":
        require_row_limit(member.rows)
    if member.rows > MAX_ROWS:
        raise InvalidValue(
            "until", "An export has at most {most:,} rows. Choose a shorter period.", most=MAX_ROWS
        )


def _finish_job(claim: JobClaim, row: ExportJob, members: Sequence[ExportProgress]) -> None:
    file = write_file(claim, row, members)
    now = claim.clock()
    with tenant_scope(claim.tenant_id):
        claim.update_job(
            state=advance(JobState.RUNNING, JobEvent.FINISH),
            claimed_until=None,
            name=file.name,
            num_bytes=file.num_bytes,
            proof=file.proof.decode(),
            finished_at=now,
            expires_at=_compute_expiry(claim, now),
        )
        record_change(
            actor=build_system_actor(claim.tenant_id),
            action="export.finished",
            target=f"export:{claim.export_id}",
            change=(None, {"file": file.name, "rows": row.rows_done, "sha256": file.sha256}),
            now=now,
        )


def _compute_expiry(claim: JobClaim, now: datetime) -> datetime:
    """Return the time at which the file expires. Every file is kept for at least KEPT_FOR.

    A closing tenant's final export is also kept until the tenant closes.
    """
    closing = Tenant.objects.filter(id=claim.tenant_id, final_export_id=claim.export_id)
    closes_at = closing.values_list("closes_at", flat=True).first()
    return now + KEPT_FOR if closes_at is None else max(now + KEPT_FOR, closes_at)


def _fail_job(claim: JobClaim, reason: str) -> None:
    """Mark the job as failed, unless the claim was lost."""
    now = claim.clock()
    try:
        with tenant_scope(claim.tenant_id):
            claim.update_job(
                state=advance(JobState.RUNNING, JobEvent.FAIL),
                claimed_until=None,
                error=reason,
                finished_at=now,
            )
            record_change(
                actor=build_system_actor(claim.tenant_id),
                action="export.failed",
                target=f"export:{claim.export_id}",
                change=(None, {"error": reason}),
                now=now,
            )
    except ClaimLost:
        return
