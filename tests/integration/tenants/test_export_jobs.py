"""Exports by the workers are complete and sealed, even if workers fail.

Rows are stored as parts, with pack index 0. The file is stored as pieces, without a pack index.
"""

import io
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import uuid
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.utils import timezone

from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.exports import sql_source
from tenants.compliance.exports.definitions.usage import USAGE_RECORDS
from tenants.compliance.exports.formats import xlsx
from tenants.compliance.exports.formats.text import FORMATS
from tenants.compliance.exports.jobs import operations, run
from tenants.compliance.exports.jobs.claim import CLAIM_FOR, MAX_ATTEMPTS, ClaimLost, claim_next_job
from tenants.compliance.exports.jobs.cleanup import clean_up_tenant_exports
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.jobs.operations import cancel_export, create_signed_url
from tenants.compliance.exports.jobs.queries import find_export, list_definitions, list_exports
from tenants.compliance.exports.jobs.run import run_due_jobs, run_slice_of_oldest_job
from tenants.compliance.exports.jobs.state_machine import UNDER_WAY, JobState
from tenants.compliance.exports.row_stream import read_rows
from tenants.compliance.exports.rows import Period, RowQuery
from tenants.compliance.exports.verification import BrokenExport, verify_export
from tenants.models import AuditEntry, ExportJob, ExportObject
from tenants.security.encryption.errors import KeyDestroyed
from tests.fakes.exports import build_exports, end_all_exports, file_of, start_export, view_export
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company
from tests.integration.tenants.records import NOON, add_completion
from tests.stack.services import Services

ROOT = Path(__file__).resolve().parents[3]
DAY = Period(NOON.replace(hour=0, minute=0), NOON.replace(hour=0, minute=0) + timedelta(days=1))
ROWS = 7


@pytest.fixture(scope="module")
def busy_company(services: Services, django_db_blocker: Any) -> Company:
    """Make a company with ROWS requests on DAY."""
    with django_db_blocker.unblock():
        company = make_company("initech", ACME_PEOPLE)
        for minutes in range(ROWS):
            add_completion(company, at=NOON + timedelta(minutes=minutes))
    return company


@pytest.fixture
def company(busy_company: Company, monkeypatch: pytest.MonkeyPatch) -> Company:
    """End the company's earlier exports, and read rows in batches of two."""
    end_all_exports(busy_company)
    monkeypatch.setattr(sql_source, "BATCH_ROWS", 2)
    return busy_company


def start_records_export(company: Company, media: str = "csv", **options: Any) -> uuid.UUID:
    return start_export(company, "usage_records", media, period=DAY, **options)


def export_directly(company: Company, media: str) -> bytes:
    out = io.BytesIO()
    query = RowQuery(company.platform, DAY, timezone.now())
    FORMATS[media](USAGE_RECORDS, read_rows(USAGE_RECORDS, query), out)
    return out.getvalue()


def after_claim_expiry() -> datetime:
    return timezone.now() + CLAIM_FOR


@pytest.mark.parametrize("media", sorted(FORMATS))
def test_a_background_export_equals_a_direct_one_and_its_proof_verifies(
    company: Company, media: str
) -> None:
    export_id = start_records_export(company, media)

    build_exports(company)

    export, data = view_export(company, export_id), file_of(company, export_id)
    assert export.state is JobState.FINISHED
    assert (export.rows_done, export.rows_expected, export.num_bytes) == (ROWS, ROWS, len(data))
    if media != "parquet":  # Parquet's row groups depend on the batches
        assert data == export_directly(company, media)
    keys = load_signing_keys().public_keys()
    document = verify_export(io.BytesIO(data), export.proof.encode(), keys)
    assert (document["export_id"], document["file"]) == (str(export_id), export.name)
    assert (document["rows"], document["media"]) == (ROWS, media)
    assert document["audit"]["before"]["sequence"] > 0


def test_a_changed_byte_of_file_or_proof_is_detected(company: Company) -> None:
    export_id = start_records_export(company)
    build_exports(company)
    data, proof = file_of(company, export_id), view_export(company, export_id).proof.encode()
    chance = random.Random(8)  # a fixed seed

    for number in range(100):
        texts = [bytearray(data), bytearray(proof)]
        part = texts[number % 2]  # the file and the proof in turn
        part[chance.randrange(len(part))] ^= chance.randrange(1, 256)
        with pytest.raises(BrokenExport):
            verify_export(
                io.BytesIO(bytes(texts[0])), bytes(texts[1]), load_signing_keys().public_keys()
            )


def test_an_interrupted_export_continues_without_duplicate_rows(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_SLICE_S", 0.0)  # a turn ends after one batch
    export_id = start_records_export(company)
    assert run_slice_of_oldest_job(company.tenant_id, timezone.now)
    assert run_slice_of_oldest_job(company.tenant_id, timezone.now)
    assert view_export(company, export_id).rows_done == 4
    # As if the previous worker had been killed after sealing a part and before counting it.
    claim = claim_next_job(company.tenant_id, timezone.now)
    assert claim is not None
    sealed_objects.store_object(claim, b"left", pack_index=0, number=2)
    assert not run_slice_of_oldest_job(company.tenant_id, timezone.now), "a claimed job was run"

    while run_slice_of_oldest_job(company.tenant_id, after_claim_expiry):
        pass

    assert file_of(company, export_id) == export_directly(company, "csv")


def test_a_lost_claim_can_store_nothing(company: Company) -> None:
    export_id = start_records_export(company)
    slow_claim = claim_next_job(company.tenant_id, timezone.now)
    quick_claim = claim_next_job(company.tenant_id, after_claim_expiry)
    assert slow_claim is not None
    assert quick_claim is not None

    with pytest.raises(ClaimLost):
        sealed_objects.store_object(slow_claim, b"late", pack_index=0, number=0)

    with tenant_scope(company.tenant_id):
        objects = ExportObject.objects.filter(tenant_id=company.tenant_id, export_id=export_id)
        assert not objects.exists()


def test_stored_exports_cannot_be_read_without_the_tenants_keys(
    company: Company, cast: Cast
) -> None:
    export_id = start_records_export(company, "ndjson")
    build_exports(company)
    (object_id,) = sealed_objects.list_object_ids(company.tenant_id, export_id, pack_index=None)

    with storages["exports"].open(f"{company.tenant_id}/{object_id}") as file:
        stored = file.read()

    assert b"python" not in stored  # the language of each record
    assert b"python" in file_of(company, export_id)
    other_export_id = start_records_export(company)
    storages["exports"].save(f"{cast.globex.tenant_id}/{object_id}", ContentFile(stored))
    with pytest.raises(DecryptionFailed):
        sealed_objects.read_object(cast.globex.tenant_id, export_id, object_id)
    with pytest.raises(DecryptionFailed):
        sealed_objects.read_object(company.tenant_id, other_export_id, object_id)


def test_parts_are_deleted_when_finished_and_the_file_when_expired(company: Company) -> None:
    export_id = start_records_export(company)
    build_exports(company)

    clean_up_tenant_exports(tenant_id=company.tenant_id, now=timezone.now())

    with tenant_scope(company.tenant_id):
        objects = ExportObject.objects.filter(tenant_id=company.tenant_id, export_id=export_id)
        assert [stored.pack_index for stored in objects] == [None]
    (object_id,) = sealed_objects.list_object_ids(company.tenant_id, export_id, pack_index=None)
    name = f"{company.tenant_id}/{object_id}"
    with storages["exports"].open(name) as file:
        copy = file.read()  # as a backup contains it

    after_expiry = timezone.now() + timedelta(days=8)  # a file is kept for seven days
    clean_up_tenant_exports(tenant_id=company.tenant_id, now=after_expiry)

    assert view_export(company, export_id).state is JobState.EXPIRED
    assert not storages["exports"].exists(name)
    storages["exports"].save(name, ContentFile(copy))
    with pytest.raises(KeyDestroyed):
        sealed_objects.read_object(company.tenant_id, export_id, object_id)


def test_a_cancelled_export_stops_and_is_deleted(company: Company) -> None:
    export_id = start_records_export(company)
    claim = claim_next_job(company.tenant_id, timezone.now)
    assert claim is not None
    sealed_objects.store_object(claim, b"part", pack_index=0, number=0)

    cancel_export(actor=company.administrator.actor, export_id=export_id, now=timezone.now())

    with pytest.raises(ClaimLost):
        claim.renew()
    clean_up_tenant_exports(tenant_id=company.tenant_id, now=timezone.now())
    with tenant_scope(company.tenant_id):
        objects = ExportObject.objects.filter(tenant_id=company.tenant_id, export_id=export_id)
        assert objects.exists(), "its worker may still be writing"
    clean_up_tenant_exports(tenant_id=company.tenant_id, now=after_claim_expiry())
    with tenant_scope(company.tenant_id):
        assert not objects.exists()
    with pytest.raises(Conflict, match="already cancelled"):
        cancel_export(actor=company.administrator.actor, export_id=export_id, now=timezone.now())


@pytest.mark.parametrize("state", UNDER_WAY)
def test_the_audit_entry_of_a_cancellation_has_the_previous_state(
    company: Company, state: JobState
) -> None:
    export_id = start_records_export(company)
    if state is JobState.RUNNING:
        assert claim_next_job(company.tenant_id, timezone.now) is not None

    cancel_export(actor=company.administrator.actor, export_id=export_id, now=timezone.now())

    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="export.cancelled", target=f"export:{export_id}")
    assert (entry.before, entry.after) == ({"state": state}, {"state": "cancelled"})


def test_an_export_that_does_not_fit_fails_with_the_reason(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xlsx, "MAX_ROWS", 3)
    export_id = start_records_export(company, "xlsx")

    build_exports(company)

    export = view_export(company, export_id)
    assert (export.state, export.rows_done) == (JobState.FAILED, 2)  # the first batch
    assert "at most 3 rows" in export.error


def test_an_export_is_given_up_after_repeated_storage_failures(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_id = start_records_export(company)
    clock = [timezone.now()]

    def raise_disk_full(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as failing:
        failing.setattr(storages["exports"], "save", raise_disk_full)
        for _ in range(MAX_ATTEMPTS):
            assert not run_slice_of_oldest_job(company.tenant_id, lambda: clock[0])
            assert view_export(company, export_id).state is JobState.RUNNING
            clock[0] += CLAIM_FOR
        run_slice_of_oldest_job(company.tenant_id, lambda: clock[0])

    assert view_export(company, export_id).state is JobState.FAILED
    assert "disk full" not in view_export(company, export_id).error


def test_an_export_of_another_definition_version_fails(company: Company) -> None:
    export_id = start_records_export(company)
    members = [{"definition": "usage_records", "version": 99}]  # the exports of the job
    with tenant_scope(company.tenant_id):
        ExportJob.objects.filter(tenant_id=company.tenant_id, id=export_id).update(members=members)

    build_exports(company)

    assert "has changed" in view_export(company, export_id).error


def test_each_tenant_has_its_own_limits(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    other_company = make_company("umbrella", ACME_PEOPLE)
    monkeypatch.setattr(operations, "MAX_UNDER_WAY", 2)
    start_records_export(company)
    start_records_export(company)

    with pytest.raises(Conflict, match="in progress"):
        start_records_export(company)

    start_export(other_company)
    monkeypatch.setattr(operations, "MAX_STORED_BYTES", 1)
    build_exports(company)
    with pytest.raises(Conflict, match="stored exports"):
        start_records_export(company)


@pytest.mark.parametrize(
    ("definition", "media", "field"),
    [("passwords", "csv", "definition"), ("keys", "exe", "format")],
)
def test_an_unknown_definition_or_format_is_refused(
    company: Company, definition: str, media: str, field: str
) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        start_export(company, definition, media)
    assert exc_info.value.field == field


def test_exports_of_data_without_read_permission_are_refused_and_hidden(
    company: Company,
) -> None:
    bill, ada = company.people[Role.BILLING].actor, company.developer.actor
    keys_export_id = start_export(company, "keys")
    usage_export_id = start_records_export(company, actor=bill)

    with pytest.raises(Forbidden):
        start_export(company, "keys", actor=bill)
    with pytest.raises(Forbidden):
        start_records_export(company, actor=ada)
    with pytest.raises(NotFound):
        find_export(actor=bill, export_id=keys_export_id)
    visible_ids = {row.id for row in list_exports(actor=bill, limit=200, cursor=None).rows}
    assert usage_export_id in visible_ids
    assert keys_export_id not in visible_ids
    assert "keys" not in {definition.name for definition in list_definitions(actor=bill)}


def test_another_tenants_export_is_not_found(company: Company, cast: Cast) -> None:
    export_id = start_records_export(company)
    bob = cast.globex.administrator.actor

    for access in (
        lambda: find_export(actor=bob, export_id=export_id),
        lambda: cancel_export(actor=bob, export_id=export_id, now=timezone.now()),
        lambda: create_signed_url(actor=bob, export_id=export_id, now=timezone.now()),
    ):
        with pytest.raises(NotFound):
            access()


def test_one_tenants_failure_does_not_delay_another(
    company: Company, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_id, foreign_id = start_records_export(company), start_export(cast.globex)
    # The job fails, because its only export has no definition.
    with tenant_scope(company.tenant_id):
        ExportJob.objects.filter(tenant_id=company.tenant_id, id=broken_id).update(members=[{}])

    run_due_jobs(clock=timezone.now, max_run_s=600)

    assert find_export(actor=cast.globex.platform, export_id=foreign_id).state is JobState.FINISHED


# A worker that kills itself after it has stored as many parts as its second argument says.
_WORKER = """
import django, os, signal, sys
django.setup()
from django.utils import timezone
from tenants.compliance.exports import sql_source
from tenants.compliance.exports.jobs import run
from tenants.compliance.exports.jobs.files import sealed_objects
sql_source.BATCH_ROWS = 2
store_part = run._store_part
num_stored = 0
def store_part_and_die(*args):
    global num_stored
    store_part(*args)
    num_stored += 1
    if num_stored == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
run._store_part = store_part_and_die
while run.run_slice_of_oldest_job(sys.argv[1], timezone.now):
    pass
"""


def test_an_export_survives_a_killed_worker(company: Company, services: Services) -> None:
    export_id = start_records_export(company, "ndjson")
    environment = {
        **os.environ,
        **services.process_mark,
        "DJANGO_SETTINGS_MODULE": "caret.settings",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")]),
    }
    command = [sys.executable, "-c", textwrap.dedent(_WORKER), company.tenant_id, "2"]
    worker = subprocess.run(command, cwd=ROOT, env=environment, timeout=300)
    assert worker.returncode == -signal.SIGKILL
    export = view_export(company, export_id)
    assert (export.state, export.rows_done) == ("running", 4)

    while run_slice_of_oldest_job(company.tenant_id, after_claim_expiry):
        pass

    ids = [json.loads(line)["request_id"] for line in file_of(company, export_id).splitlines()]
    assert len(ids) == len(set(ids)) == ROWS
    assert file_of(company, export_id) == export_directly(company, "ndjson")
