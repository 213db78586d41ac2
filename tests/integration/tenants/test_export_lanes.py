"""Long exports are written in a separate lane, so that other tenants do not wait for them."""

import uuid
from collections.abc import Sequence

import pytest
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tenants.compliance import tasks
from tenants.compliance.exports.jobs import claim
from tenants.compliance.exports.jobs import run as jobs_run
from tenants.compliance.exports.jobs.claim import JobClaim, JobLane
from tenants.compliance.exports.jobs.files.export_file import ExportFile, write_file
from tenants.compliance.exports.jobs.progress import ExportProgress
from tenants.compliance.exports.jobs.queries import find_export
from tenants.compliance.exports.jobs.run import run_due_jobs, run_slice_of_oldest_job
from tenants.compliance.exports.jobs.state_machine import JobState
from tenants.models import AuditEntry, ExportJob
from tests.fakes.exports import end_all_exports, start_export, view_export
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company
from tests.integration.tenants.records import NOON, add_completion
from tests.integration.tenants.test_export_jobs import start_records_export

ROWS = 7


@pytest.fixture
def company(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Company:
    """Make a company whose export of ROWS rows counts as long. Rows are read two at a time.

    Exports of globex that earlier tests started are ended.
    """
    monkeypatch.setattr("tenants.compliance.exports.sql_source.BATCH_ROWS", 2)
    monkeypatch.setattr(jobs_run, "_SLICE_S", 0.0)  # a worker's turn ends after one batch
    monkeypatch.setattr(claim, "SHORT_ROWS", ROWS - 1)
    end_all_exports(cast.globex)
    company = make_company("initech", ACME_PEOPLE)
    for _ in range(ROWS):
        add_completion(company, at=NOON)
    return company


def state_of(company: Company, export_id: uuid.UUID) -> JobState:
    return find_export(actor=company.platform, export_id=export_id).state


def run_short_lane(company: Company) -> None:
    """Read the rows of all the company's exports, and write the files of short exports."""
    while run_slice_of_oldest_job(company.tenant_id, timezone.now):
        pass


def test_a_long_export_is_written_in_the_long_lane(company: Company) -> None:
    export_id = start_records_export(company)

    run_due_jobs(clock=timezone.now, max_run_s=600)

    assert (view_export(company, export_id).state, view_export(company, export_id).rows_done) == (
        JobState.RUNNING,
        ROWS,
    )
    run_due_jobs(clock=timezone.now, lane=JobLane.LONG, max_run_s=600)
    assert view_export(company, export_id).state is JobState.FINISHED
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="export.finished", target=f"export:{export_id}")
    assert (entry.after or {})["rows"] == ROWS


def test_the_long_lane_does_not_read_rows(company: Company) -> None:
    export_id = start_records_export(company)

    assert not run_slice_of_oldest_job(company.tenant_id, timezone.now, JobLane.LONG)

    assert view_export(company, export_id).state is JobState.QUEUED


def test_a_small_export_finishes_while_another_tenants_long_one_is_written(
    company: Company, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_id, small_id = start_records_export(company), start_export(cast.globex)
    run_short_lane(company)
    states: list[JobState] = []

    def write_slowly(
        job_claim: JobClaim, row: ExportJob, members: Sequence[ExportProgress]
    ) -> ExportFile:
        if row.id == long_id:
            tasks.run_export_jobs()
            states.append(state_of(cast.globex, small_id))
        return write_file(job_claim, row, members)

    monkeypatch.setattr(jobs_run, "write_file", write_slowly)
    tasks.run_long_export_jobs()

    assert states == [JobState.FINISHED]
    assert state_of(company, long_id) is JobState.FINISHED


def test_one_long_export_is_written_at_a_time(company: Company) -> None:
    export_id = start_records_export(company)
    run_short_lane(company)

    with redis_lock(connect_to_redis(), "long-exports"):
        tasks.run_long_export_jobs()

    # All rows are read, but the file is not written: the export is RUNNING until it is FINISHED.
    assert view_export(company, export_id).state is JobState.RUNNING


def test_a_small_export_is_built_before_a_waiting_long_one(company: Company) -> None:
    long_id = start_records_export(company)
    run_short_lane(company)
    small_id = start_export(company)

    run_short_lane(company)

    assert [view_export(company, export_id).state for export_id in (long_id, small_id)] == [
        JobState.RUNNING,
        JobState.FINISHED,
    ]


def test_a_tenant_has_one_worker_across_both_lanes(company: Company) -> None:
    start_records_export(company)
    run_short_lane(company)
    start_export(company)

    assert claim.claim_next_job(company.tenant_id, timezone.now, JobLane.LONG) is not None

    assert claim.claim_next_job(company.tenant_id, timezone.now) is None
