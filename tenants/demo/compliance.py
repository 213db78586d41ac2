"""The last steps of seeding: the erasure of a user, a purge, and exports.

Each step also changes stores other than the database. A rollback would not undo these changes, so
each step is committed on its own.
"""

from datetime import datetime, timedelta
from typing import Final

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tenants.compliance.data_subjects.erasure_worker import run_erasure
from tenants.compliance.data_subjects.operations import ErasureRequest, request_user_erasure
from tenants.compliance.exports.definitions.definitions import PACK, PACK_MEDIA
from tenants.compliance.exports.jobs.claim import (
    CLAIM_FOR,
    MAX_ATTEMPTS,
    Clock,
    JobLane,
    claim_next_job,
)
from tenants.compliance.exports.jobs.operations import ExportRequest, cancel_export, request_export
from tenants.compliance.exports.jobs.run import run_slice_of_oldest_job
from tenants.compliance.exports.rows import Period
from tenants.demo.members import DemoCompany
from tenants.privacy.retention.purge import purge_due
from tenants.security.authorization.actor import Actor

# The exports need far fewer rounds. In a round, each lane runs one slice, of about two seconds.
_MAX_ROUNDS: Final = 500
_EXPORTED_TIME: Final = timedelta(days=30)  # that each export covers, except that of invoices


def erase_one_user(company: DemoCompany, at: datetime) -> None:
    tenant_id = company.timeline.tenant_id
    erasure_request = ErasureRequest(
        company.erased.user_id, "Requested by letter from a former employee."
    )
    erasure_id = request_user_erasure(
        actor=company.find_actor(Role.OWNER), erasure_request=erasure_request, now=at
    )
    run_erasure(tenant_id=tenant_id, erasure_id=erasure_id, now=at + timedelta(minutes=10))


def purge_expired_data(company: DemoCompany, at: datetime) -> None:
    purge_due(now=at, tenant_ids=[company.timeline.tenant_id])


def build_exports(company: DemoCompany, at: datetime) -> None:
    """Create a failed export, a cancelled one and three finished ones.

    The locks keep the export tasks of workers from starting. A task that is already running
    continues, and may build these exports.
    """
    with redis_lock(connect_to_redis(), "exports"), redis_lock(connect_to_redis(), "long-exports"):
        _create_all_exports(company, at)


def _create_all_exports(company: DemoCompany, at: datetime) -> None:
    auditor, owner, payer = (
        company.find_actor(role) for role in (Role.AUDITOR, Role.OWNER, Role.BILLING)
    )
    period = Period(at - _EXPORTED_TIME, at)
    _fail_export(company, auditor, ExportRequest("usage_days", "xlsx", period), at)
    cancelled_job = request_export(
        actor=auditor, export_request=ExportRequest("members", "csv", period), now=at
    )
    cancel_export(actor=auditor, export_id=cancelled_job.id, now=at + timedelta(minutes=1))
    for number, (actor, export_request) in enumerate(
        (
            (auditor, ExportRequest("usage_days", "csv", period)),
            (payer, ExportRequest("invoices", "xlsx", Period(company.timeline.begins_at, at))),
            (owner, ExportRequest(PACK, PACK_MEDIA, period)),  # an evidence pack
        )
    ):
        # 20 minutes apart, and after the cancelled export.
        requested_at = at + timedelta(minutes=20 * number + 20)
        request_export(actor=actor, export_request=export_request, now=requested_at)
        _run_export_jobs(company, requested_at + timedelta(minutes=1))


def _fail_export(
    company: DemoCompany, actor: Actor, export_request: ExportRequest, at: datetime
) -> None:
    """Let an export fail: claim its job MAX_ATTEMPTS times, as if each worker was then killed."""
    tenant_id = company.timeline.tenant_id
    with tenant_scope(tenant_id):
        request_export(actor=actor, export_request=export_request, now=at)
        for number in range(MAX_ATTEMPTS):
            # The previous claim has expired by this time.
            claim_next_job(tenant_id, _make_clock(at + 2 * number * CLAIM_FOR))
    # The next attempt would be one too many, so this run marks the export as failed.
    _run_export_jobs(company, at + 2 * MAX_ATTEMPTS * CLAIM_FOR)


def _run_export_jobs(company: DemoCompany, at: datetime) -> None:
    """Run slices of the tenant's export jobs in both lanes, until no job can run.

    Raises RuntimeError if jobs are left after _MAX_ROUNDS rounds.
    """
    for _ in range(_MAX_ROUNDS):
        did_work = [
            run_slice_of_oldest_job(company.timeline.tenant_id, _make_clock(at), lane)
            for lane in JobLane
        ]
        if not any(did_work):
            return
    raise RuntimeError("The export jobs of the demo company do not end.")


def _make_clock(at: datetime) -> Clock:
    return lambda: at
