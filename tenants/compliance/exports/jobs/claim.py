"""Whose build it is. Every change of a build is conditional on the claim, in one UPDATE whose row
count is looked at: a worker that was too slow, or whose build was cancelled, finds out with its
next step and stops. One that was killed lets go after CLAIM_FOR.

Builds go in two lanes, each with a worker of its own at most. To write the file of many rows takes
minutes and cannot be divided: that is the long lane's. All else is the short one's, where a turn
takes seconds.
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

# Longer than a writer works without reading or writing: a sheet of a million rows is packed.
CLAIM_FOR: Final = timedelta(seconds=120)
MAX_ATTEMPTS: Final = 5  # without coming on
SHORT_ROWS: Final = 20_000  # are written within seconds, in every format
Clock = Callable[[], datetime]


class JobLane(StrEnum):
    SHORT = "short"
    LONG = "long"


def lane_of(row: ExportJob) -> JobLane:
    is_long = row.rows_done > SHORT_ROWS and is_reading_done(row.members)
    return JobLane.LONG if is_long else JobLane.SHORT


class ClaimLost(Exception):
    """It is somebody else's by now, or was cancelled."""


@dataclass(slots=True)
class JobClaim:
    tenant_id: TenantId
    build_id: UUID
    until: datetime
    clock: Clock

    def update_job(self, **fields: Any) -> None:
        """Changes the build, and holds it on. Inside the tenant's scope. Raises Lost."""
        until = self.clock() + CLAIM_FOR
        ours = ExportJob.objects.filter(
            tenant_id=self.tenant_id,
            id=self.build_id,
            state=JobState.RUNNING,
            claimed_until=self.until,
        )
        if not ours.update(**{"claimed_until": until, **fields}):
            raise ClaimLost
        self.until = until

    def renew(self) -> None:
        """Raises Lost."""
        with tenant_scope(self.tenant_id):
            self.update_job()

    def release(self) -> None:
        with tenant_scope(self.tenant_id):
            self.update_job(claimed_until=None)


def claim_next(tenant_id: TenantId, clock: Clock, lane: JobLane = JobLane.SHORT) -> JobClaim | None:
    """The oldest of a tenant's in the lane, unless one of its builds is in hand: a tenant has one
    worker at most. One query where there is nothing to do."""
    now = clock()
    with tenant_scope(tenant_id):
        waiting = ExportJob.objects.filter(tenant_id=tenant_id, state__in=UNDER_WAY, swept_at=None)
        rows = list(waiting.order_by("created_at", "id"))
        if any(row.claimed_until and row.claimed_until > now for row in rows):
            return None
        ours = next((row for row in rows if lane_of(row) is lane), None)
        return None if ours is None else _claim(ours, tenant_id, now, clock)


def _claim(row: ExportJob, tenant_id: TenantId, now: datetime, clock: Clock) -> JobClaim | None:
    """None: another worker was faster."""
    until = now + CLAIM_FOR
    state = JobState(row.state)
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    same = ExportJob.objects.filter(free, tenant_id=tenant_id, id=row.id, state=state)
    taken = same.update(
        state=advance(state, JobEvent.BEGIN) if state is JobState.QUEUED else state,
        claimed_until=until,
        num_attempts=F("num_attempts") + 1,
    )
    return JobClaim(tenant_id, row.id, until, clock) if taken else None
