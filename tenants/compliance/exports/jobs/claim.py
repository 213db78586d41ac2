"""Claims of export jobs, so that only one worker runs a job.

A worker changes its job only while it holds the claim, in one UPDATE whose row count is checked. A
worker that was too slow, or whose job was cancelled, notices this at its next step and stops. The
claim of a killed worker expires after CLAIM_FOR.

Jobs run in two lanes, each with at most one worker. Writing a file of many rows takes minutes and
cannot be divided, so it runs in the long lane. Everything else takes seconds and runs in the short
lane.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Q

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.compliance.exports.jobs.progress import is_reading_done
from tenants.compliance.exports.jobs.state_machine import UNDER_WAY, JobEvent, JobState, advance
from tenants.models import ExportJob

# A worker renews its claim when it reads or writes. CLAIM_FOR is longer than the time between two
# renewals, even when a sheet of a million rows is compressed.
CLAIM_FOR: Final = timedelta(seconds=120)
MAX_ATTEMPTS: Final = 5  # without progress
SHORT_ROWS: Final = 20_000  # a file with at most this number of rows is written within seconds
Clock = Callable[[], datetime]


class JobLane(StrEnum):
    SHORT = "short"
    LONG = "long"


def choose_lane(row: ExportJob) -> JobLane:
    """Return the lane of the job's next step."""
    is_long = row.rows_done > SHORT_ROWS and is_reading_done(row.members)
    return JobLane.LONG if is_long else JobLane.SHORT


class ClaimLost(Exception):
    """Another worker has the job, or it was cancelled."""


@dataclass(slots=True)
class JobClaim:
    tenant_id: TenantId
    export_id: UUID
    until: datetime  # ExportJob.claimed_until
    clock: Clock

    def update_job(self, **fields: Any) -> None:
        """Change the job and extend the claim. Must run inside the tenant's scope.

        The field `claimed_until=None` ends the claim instead. Raises ClaimLost.
        """
        until = self.clock() + CLAIM_FOR
        claimed_job = ExportJob.objects.filter(
            tenant_id=self.tenant_id,
            id=self.export_id,
            state=JobState.RUNNING,
            claimed_until=self.until,
        )
        if not claimed_job.update(**{"claimed_until": until, **fields}):
            raise ClaimLost
        self.until = until

    def renew(self) -> None:
        """Extend the claim. Raises ClaimLost."""
        with tenant_scope(self.tenant_id):
            self.update_job()

    def release(self) -> None:
        """End the claim. Raises ClaimLost."""
        with tenant_scope(self.tenant_id):
            self.update_job(claimed_until=None)


def claim_next_job(
    tenant_id: TenantId, clock: Clock, lane: JobLane = JobLane.SHORT
) -> JobClaim | None:
    """Claim the tenant's oldest job in the lane. One query if there is nothing to claim.

    Return None if the lane has no job of the tenant, or if one of the tenant's jobs is already
    claimed in either lane. So a tenant does not occupy the workers of both lanes.
    """
    now = clock()
    with tenant_scope(tenant_id):
        # Unfinished jobs always have objects_deleted_at=None. The condition selects the index.
        unfinished = ExportJob.objects.filter(
            tenant_id=tenant_id, state__in=UNDER_WAY, objects_deleted_at=None
        )
        rows = list(unfinished.order_by("created_at", "id"))
        if any(row.claimed_until and row.claimed_until > now for row in rows):
            return None
        next_job = next((row for row in rows if choose_lane(row) is lane), None)
        return None if next_job is None else _claim_job(next_job, tenant_id, now, clock)


def _claim_job(row: ExportJob, tenant_id: TenantId, now: datetime, clock: Clock) -> JobClaim | None:
    """Claim a job; None: another worker was faster."""
    until = now + CLAIM_FOR
    state = JobState(row.state)
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    claimable_jobs = ExportJob.objects.filter(free, tenant_id=tenant_id, id=row.id, state=state)
    is_claimed = claimable_jobs.update(
        state=advance(state, JobEvent.BEGIN) if state is JobState.QUEUED else state,
        claimed_until=until,
        num_attempts=F("num_attempts") + 1,
    )
    return JobClaim(tenant_id, row.id, until, clock) if is_claimed else None
