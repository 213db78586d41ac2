"""Closing a tenant in one flow: final export, grace period, deletion with a certificate."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from structlog.testing import capture_logs

from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.data_subjects.erasure_worker import run_due_erasures
from tenants.compliance.exports.evidence_pack_verification import verify_pack
from tenants.compliance.exports.jobs.operations import cancel_export
from tenants.compliance.exports.jobs.run import run_due_jobs
from tenants.compliance.exports.jobs.state_machine import JobState
from tenants.compliance.tenant_closing import (
    MAX_GRACE_DAYS,
    TenantClosure,
    begin_closing,
    close_due_tenants,
    find_closure,
)
from tenants.fleet.operators.operations import change_status
from tenants.models import AuditEntry, ExportJob, Tenant
from tenants.privacy.retention.operations import NewHold, place_hold, release_hold
from tenants.privacy.retention.verification import verify_certificate
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company, make_completion

GRACE_DAYS = 14


@pytest.fixture
def company() -> Company:
    tenant = make_company("gavin", ACME_PEOPLE)
    make_completion(tenant, tenant.developer)
    return tenant


def begin_company_closing(company: Company) -> datetime:
    return begin_closing(
        actor=company.platform,
        reason="contract ended",
        now=timezone.now(),
        grace_days=GRACE_DAYS,
    )


def find_company_closure(company: Company) -> TenantClosure:
    return find_closure(tenant_id=company.tenant_id)


def read_status(company: Company) -> str:
    return Tenant.objects.get(id=company.tenant_id).status


def end_grace_period(company: Company) -> None:
    """End this tenant's grace period, and let the worker run. Other tenants' periods end later."""
    past = timezone.now() - timedelta(seconds=1)
    Tenant.objects.filter(id=company.tenant_id).update(closes_at=past)
    close_due_tenants(now=timezone.now())


def test_a_tenant_is_closed_and_deleted_after_the_grace_period(
    company: Company, tmp_path: Path
) -> None:
    begin_company_closing(company)
    run_due_jobs(clock=timezone.now, max_run_s=600)
    export_file, certificate_file = tmp_path / "export.zip", tmp_path / "certificate.json"
    call_command("tenant", "closing", company.slug, "--export", str(export_file))
    close_due_tenants(now=timezone.now())
    status_during = read_status(company)

    end_grace_period(company)
    status_after = read_status(company)
    run_due_erasures(now=timezone.now())
    call_command("tenant", "closing", company.slug, "--certificate", str(certificate_file))

    assert (status_during, status_after) == (TenantStatus.CLOSING, TenantStatus.CLOSED)
    with export_file.open("rb") as file:
        assert verify_pack(file, load_signing_keys().public_keys())
    certificate = verify_certificate(
        certificate_file.read_bytes(), load_signing_keys().public_keys()
    )
    assert (certificate["tenant"], certificate["reason"]) == (company.slug, "shredding")
    closure = find_company_closure(company)
    assert closure.certificate == certificate_file.read_text()
    assert (closure.is_erasing, closure.closes_at) == (False, None)
    close_due_tenants(now=timezone.now())  # a further run of the worker changes nothing
    assert find_company_closure(company) == closure


def test_the_final_export_is_kept_until_the_tenant_closes_and_is_audited(company: Company) -> None:
    closes_at = begin_company_closing(company)

    run_due_jobs(clock=timezone.now, max_run_s=600)

    closure = find_company_closure(company)
    assert closure.final_export is not None
    assert (closure.final_export.state, closure.final_export.expires_at) == (
        JobState.FINISHED,
        closes_at,
    )
    with tenant_scope(company.tenant_id):
        job = ExportJob.objects.get(id=closure.final_export.id)
        assert job.rows_done > 0
        assert AuditEntry.objects.filter(
            action="export.requested", target=f"export:{job.id}"
        ).exists()


@pytest.mark.parametrize("status", [TenantStatus.ACTIVE, TenantStatus.SUSPENDED])
def test_closing_is_cancelled_within_the_grace_period(
    company: Company, status: TenantStatus
) -> None:
    begin_company_closing(company)

    change_status(actor=company.platform, status=status, reason="mistake", now=timezone.now())
    close_due_tenants(now=timezone.now())

    assert read_status(company) == status
    assert find_company_closure(company).closes_at is None


def test_a_tenant_without_its_final_export_is_not_closed(company: Company) -> None:
    begin_company_closing(company)
    end_grace_period(company)
    status_while_exporting = read_status(company)
    with tenant_scope(company.tenant_id):
        ExportJob.objects.filter(tenant_id=company.tenant_id).update(state=JobState.FAILED)
    end_grace_period(company)

    assert (status_while_exporting, read_status(company)) == (
        TenantStatus.CLOSING,
        TenantStatus.CLOSING,
    )


def test_a_cancelled_final_export_does_not_delay_the_closing(company: Company) -> None:
    begin_company_closing(company)
    export = find_company_closure(company).final_export
    assert export is not None
    olga = company.people[Role.OWNER].actor
    cancel_export(actor=olga, export_id=export.id, now=timezone.now())

    end_grace_period(company)

    assert read_status(company) == TenantStatus.CLOSED


def test_a_legal_hold_delays_the_deletion_until_it_is_released(company: Company) -> None:
    hold = NewHold("Case 4711", "court order")
    hold_id = place_hold(actor=company.platform, new=hold, now=timezone.now())
    begin_company_closing(company)
    run_due_jobs(clock=timezone.now, max_run_s=600)

    end_grace_period(company)
    closure_on_hold = find_company_closure(company)
    release_hold(actor=company.platform, hold_id=hold_id, reason="over", now=timezone.now())
    close_due_tenants(now=timezone.now())

    assert read_status(company) == TenantStatus.CLOSED
    assert (closure_on_hold.is_erasing, find_company_closure(company).is_erasing) == (False, True)


def test_a_delay_is_logged_once_however_often_the_worker_runs(company: Company) -> None:
    hold = NewHold("Case 4712", "court order")
    place_hold(actor=company.platform, new=hold, now=timezone.now())
    begin_company_closing(company)
    run_due_jobs(clock=timezone.now, max_run_s=600)

    with capture_logs() as logs:
        end_grace_period(company)
        close_due_tenants(now=timezone.now())
        close_due_tenants(now=timezone.now())

    (delay,) = [
        log
        for log in logs
        if log["event"] == "tenant_closing.delayed" and log["tenant_id"] == company.tenant_id
    ]
    assert "legal hold" in delay["reason"]


@pytest.mark.parametrize("days", [0, -1, MAX_GRACE_DAYS + 1])
def test_an_impossible_grace_period_changes_nothing(company: Company, days: int) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        begin_closing(actor=company.platform, reason="x", now=timezone.now(), grace_days=days)

    assert exc_info.value.field == "grace_days"
    assert read_status(company) == TenantStatus.ACTIVE


def test_only_operators_can_begin_to_close_a_tenant(company: Company) -> None:
    with pytest.raises(Forbidden):
        begin_closing(
            actor=company.people[Role.OWNER].actor, reason="x", now=timezone.now(), grace_days=1
        )


def test_nothing_can_be_downloaded_before_the_export_is_finished(
    company: Company, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match="is not closing"):
        call_command("tenant", "closing", company.slug, "--export", str(tmp_path / "x"))
    begin_company_closing(company)

    with pytest.raises(CommandError, match="queued"):
        call_command("tenant", "closing", company.slug, "--export", str(tmp_path / "x"))
    with pytest.raises(CommandError, match="no certificate"):
        call_command("tenant", "closing", company.slug, "--certificate", str(tmp_path / "x"))


def test_closing_begins_only_once(company: Company) -> None:
    begin_company_closing(company)

    with pytest.raises(Conflict):
        begin_company_closing(company)


def test_a_failed_download_keeps_the_file_of_an_earlier_one(
    company: Company, tmp_path: Path
) -> None:
    export_file = tmp_path / "export.zip"
    export_file.write_bytes(b"of an earlier download")
    begin_company_closing(company)

    with pytest.raises(CommandError, match="queued"):
        call_command("tenant", "closing", company.slug, "--export", str(export_file))

    assert export_file.read_bytes() == b"of an earlier download"
    assert list(tmp_path.iterdir()) == [export_file]


def test_a_file_that_cannot_be_written_is_an_error_of_the_command(
    company: Company, tmp_path: Path
) -> None:
    begin_company_closing(company)
    run_due_jobs(clock=timezone.now, max_run_s=600)

    with pytest.raises(CommandError, match="Cannot write"):
        call_command("tenant", "closing", company.slug, "--export", str(tmp_path / "no" / "x"))


def test_a_download_onto_a_folder_fails_and_leaves_no_temporary_file(
    company: Company, tmp_path: Path
) -> None:
    (folder := tmp_path / "folder").mkdir()
    begin_company_closing(company)
    run_due_jobs(clock=timezone.now, max_run_s=600)

    with pytest.raises(CommandError, match="Cannot write"):
        call_command("tenant", "closing", company.slug, "--export", str(folder))

    assert list(tmp_path.iterdir()) == [folder]
