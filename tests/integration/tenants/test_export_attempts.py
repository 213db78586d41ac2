"""An export that cannot be built is given up after some attempts, and leaves nothing stored.

An attempt that an erasure interrupts leaves nothing stored either. A worker first stores the
export's rows as parts. Then it writes the file, stored in pieces.
"""

import uuid
from typing import Any

import pytest
from django.core.files.storage import storages
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.compliance.exports.jobs import run as jobs_run
from tenants.compliance.exports.jobs.claim import CLAIM_FOR, MAX_ATTEMPTS, claim_next_job
from tenants.compliance.exports.jobs.cleanup import (
    clean_up_tenant_exports,
    expire_finished_exports,
)
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.jobs.run import run_slice_of_oldest_job
from tenants.compliance.exports.jobs.state_machine import JobState
from tenants.models import AuditEntry, ExportObject
from tests.fakes.exports import build_exports, view_export
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.tenants.records import NOON, add_completion
from tests.integration.tenants.test_export_jobs import start_records_export

ROWS = 7


@pytest.fixture
def company(monkeypatch: pytest.MonkeyPatch) -> Company:
    """Make a company whose exports consist of many pieces."""
    monkeypatch.setattr(sealed_objects, "PIECE_BYTES", 64)
    company = make_company("initech", ACME_PEOPLE)
    for _ in range(ROWS):
        add_completion(company, at=NOON)
    return company


def read_without_writing(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker read all rows of the export without writing its file."""
    with monkeypatch.context() as context:
        context.setattr(jobs_run, "_finish_job", lambda *_: None)
        run_slice_of_oldest_job(company.tenant_id, timezone.now)


def count_stored_objects(company: Company, export_id: uuid.UUID) -> int:
    """Return the number of stored parts and pieces."""
    with tenant_scope(company.tenant_id):
        objects = ExportObject.objects.filter(tenant_id=company.tenant_id, export_id=export_id)
        ids = list(objects.values_list("id", flat=True))
    return sum(storages["exports"].exists(f"{company.tenant_id}/{object_id}") for object_id in ids)


def test_an_export_that_never_finishes_is_given_up_and_leaves_no_pieces(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenants.compliance.exports.sql_source.BATCH_ROWS", 2)
    export_id = start_records_export(company)
    read_without_writing(company, monkeypatch)
    # Without its last part, the export cannot be finished. The pack index of its parts is 0.
    last_part = sealed_objects.list_object_ids(company.tenant_id, export_id, pack_index=0)[-1]
    sealed_objects.delete_object(company.tenant_id, last_part)
    clock = [timezone.now()]
    num_stored_after_attempts = []

    for _ in range(MAX_ATTEMPTS + 1):
        clock[0] += CLAIM_FOR  # the claim of the attempt before has expired
        run_slice_of_oldest_job(company.tenant_id, lambda: clock[0])
        num_stored_after_attempts.append(count_stored_objects(company, export_id))

    assert view_export(company, export_id).state is JobState.FAILED
    # There are at most ROWS parts, so the others are pieces.
    assert num_stored_after_attempts[0] > ROWS, "the first attempt wrote no pieces"
    # No attempt leaves pieces in addition to those of the attempt before.
    assert set(num_stored_after_attempts) == {num_stored_after_attempts[0]}
    clean_up_tenant_exports(tenant_id=company.tenant_id, now=clock[0])
    assert count_stored_objects(company, export_id) == 0


def test_the_audit_entry_of_a_failed_export_has_the_reason(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_run, "MAX_ROWS", ROWS - 1)
    export_id = start_records_export(company)

    run_slice_of_oldest_job(company.tenant_id, timezone.now)

    error = view_export(company, export_id).error
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="export.failed", target=f"export:{export_id}")
    assert (entry.actor_kind, entry.after) == ("platform", {"error": error})
    assert f"at most {ROWS - 1} rows" in error


def test_an_object_that_is_stored_during_an_erasure_is_deleted(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_id = start_records_export(company)
    claim = claim_next_job(company.tenant_id, timezone.now)
    assert claim is not None
    save = storages["exports"].save
    part_id = sealed_objects.store_object(claim, b"part", pack_index=0, number=0)

    def save_after_erasure(name: str, content: Any) -> str:
        expire_finished_exports(tenant_id=company.tenant_id, now=timezone.now())
        return str(save(name, content))

    with monkeypatch.context() as context:
        context.setattr(storages["exports"], "save", save_after_erasure)
        object_id = sealed_objects.store_object(claim, b"part", pack_index=0, number=1)
    is_part_stored = storages["exports"].exists(f"{company.tenant_id}/{part_id}")
    build_exports(company)
    clean_up_tenant_exports(tenant_id=company.tenant_id, now=timezone.now())

    assert view_export(company, export_id).state is JobState.FINISHED
    assert not is_part_stored
    assert not storages["exports"].exists(f"{company.tenant_id}/{object_id}")
