"""An erased user's data is deleted everywhere. Usage counts remain, under an anonymous ID."""

import uuid
import zlib
from datetime import datetime, timedelta
from datetime import timezone as fixed_offset
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance import tasks
from tenants.compliance.data_subjects import anonymization
from tenants.compliance.data_subjects.erasure_worker import (
    pseudonymize_late_records,
    run_due_erasures,
)
from tenants.compliance.data_subjects.operations import ErasureRequest, request_user_erasure
from tenants.compliance.data_subjects.queries import list_erasures
from tenants.compliance.exports.jobs import run as jobs_run
from tenants.compliance.exports.jobs.claim import ClaimLost, claim_next_job
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.jobs.state_machine import JobState
from tenants.identity.members.operations import insert_membership
from tenants.models import (
    DataKey,
    Erasure,
    ExportObject,
    LegalHold,
    Membership,
    Outcome,
    TypingReport,
    UsageDay,
    UsageHour,
    UsageRecord,
    User,
)
from tenants.privacy.consent.queries import list_receipts
from tenants.privacy.content_capture import erasure as content_erasure
from tenants.privacy.retention.operations import NewHold, place_hold, release_hold
from tenants.privacy.retention.queries import list_certificates
from tenants.privacy.retention.verification import verify_certificate
from tenants.security.audit.queries import AuditFilter, list_entries
from tenants.security.authorization.actor import Actor
from tenants.security.encryption.queries import find_destruction_proofs
from tests.fakes.exports import build_exports, file_of, make_export, start_export, view_export
from tests.fixtures.companies import make_completion
from tests.fixtures.users import make_colleague
from tests.integration.content_capture.consenting_tenant import list_files
from tests.integration.data_subjects.full_text_scan import find_occurrences
from tests.integration.data_subjects.traces import TracedTenant

USAGE_MODELS = (UsageRecord, Outcome, TypingReport, UsageHour, UsageDay)


def request_erasure(
    traced: TracedTenant, *, by: Actor | None = None, user_id: str | None = None
) -> uuid.UUID:
    new = ErasureRequest(user_id or traced.ada.user_id, "a letter of 3 May")  # type: ignore[arg-type]  # tests pass any text as an ID
    return request_user_erasure(actor=by or traced.olga, erasure_request=new, now=timezone.now())


def erase(traced: TracedTenant) -> None:
    request_erasure(traced)
    assert run_due_erasures(now=timezone.now()) == 1


def read_certificate(traced: TracedTenant) -> dict[str, Any]:
    """Verify and return the newest certificate.

    An erasure issues its own certificate last, after those of content capture.
    """
    rows = list_certificates(actor=traced.olga, limit=50, cursor=None).rows
    newest = max(rows, key=lambda row: row.number)
    return verify_certificate(newest.document.encode(), load_signing_keys().public_keys())


def list_usage_user_ids(traced: TracedTenant) -> dict[str, set[str]]:
    """Return the user IDs in the tables of usage."""
    with tenant_scope(traced.company.tenant_id):
        return {
            model.__name__: set(map(str, model.objects.values_list("user_id", flat=True)))
            for model in USAGE_MODELS
        }


def find_traces(traced: TracedTenant, folder: Path, text: str | None = None) -> set[str]:
    return find_occurrences(text or traced.mark, traced.company.tenant_id, folder)


def test_an_erased_user_is_in_no_table_stream_or_file(
    acme: TracedTenant, globex: TracedTenant, folder: Path
) -> None:
    before, globex_traces = find_traces(acme, folder), find_traces(globex, folder)

    erase(acme)

    assert {"tenants_user", "tenants_invitation", "tenants_scim_user"} <= before
    assert find_traces(acme, folder) == set()
    # The user's ID may remain in these stores, as evidence without any other data about the user.
    assert find_traces(acme, folder, acme.ada.user_id) <= {
        *("tenants_user", "tenants_membership", "tenants_apikey", "tenants_erasure"),
        *("tenants_auditentry", "tenants_consent_receipt", "tenants_content_erasure"),
        *("tenants_deletioncertificate", "keyring_data_key", "caret:snapshots"),
    }
    assert find_traces(globex, folder) == globex_traces
    assert len(list_files(folder)) == 1  # the other tenant's


def test_only_one_worker_erases_and_the_others_skip(acme: TracedTenant, folder: Path) -> None:
    request_erasure(acme)

    with redis_lock(connect_to_redis(), "erasures"):  # as another worker holds it
        tasks.run_due_erasures()

    assert "tenants_user" in find_traces(acme, folder)
    tasks.run_due_erasures()
    assert find_traces(acme, folder) == set()


def test_usage_counts_remain_under_one_anonymous_id(acme: TracedTenant) -> None:
    make_completion(acme.company, acme.company.administrator)
    before = list_usage_user_ids(acme)

    erase(acme)

    after = list_usage_user_ids(acme)
    anonymous_ids = after["UsageRecord"] - before["UsageRecord"]
    assert len(anonymous_ids) == 1
    assert after["UsageRecord"] == anonymous_ids | {acme.company.administrator.user_id}
    for name in ("Outcome", "TypingReport", "UsageHour", "UsageDay"):
        assert after[name] == anonymous_ids, name
    assert not User.objects.filter(id__in=anonymous_ids).exists()
    with tenant_scope(acme.company.tenant_id):
        assert Erasure.objects.get().secret is None


def test_the_certificate_proves_that_the_keys_are_destroyed(acme: TracedTenant) -> None:
    erase(acme)

    facts = read_certificate(acme)

    assert (facts["reason"], facts["user_id"]) == ("erasure", acme.ada.user_id)
    assert facts["legal_hold_ids"] == []
    assert facts["rows"]["tenants_usage_record"] == 1
    assert [key["opens"] for key in facts["keys"]] == [False]
    scope = f"user:{acme.ada.user_id}"
    proofs = find_destruction_proofs(tenant_id=acme.company.tenant_id, scope=scope)
    assert not any(proof.opens for proof in proofs)  # the encryption keys open no data any more
    assert any("audit" in kept_data["what"] for kept_data in facts["kept"])
    (row,) = list_erasures(actor=acme.olga, limit=9, cursor=None).rows
    assert row.finished_at is not None


def test_data_on_hold_remains_and_the_certificate_names_the_hold(
    acme: TracedTenant, folder: Path
) -> None:
    new_hold = NewHold(name="m", reason="r", user_id=uuid.UUID(acme.ada.user_id))
    hold_id = place_hold(actor=acme.olga, new=new_hold, now=timezone.now())

    erase(acme)

    assert read_certificate(acme)["legal_hold_ids"] == [str(hold_id)]
    assert list_usage_user_ids(acme)["UsageRecord"] == {acme.ada.user_id}
    assert "tenants_user" in find_traces(acme, folder)
    release_hold(actor=acme.olga, hold_id=hold_id, reason="settled", now=timezone.now())
    erase(acme)
    assert find_traces(acme, folder) == set()


def test_a_hold_of_another_period_does_not_keep_usage_counts(acme: TracedTenant) -> None:
    new_hold = NewHold(name="m", reason="r", until=timezone.now() - timedelta(days=900))
    place_hold(actor=acme.olga, new=new_hold, now=timezone.now())

    erase(acme)

    assert acme.ada.user_id not in list_usage_user_ids(acme)["UsageRecord"]


def test_an_interrupted_erasure_continues_with_the_same_anonymous_id(
    acme: TracedTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_erasure(acme)
    with monkeypatch.context() as context:
        # As if the worker was killed: no `except Exception` catches the error of pytest.fail.
        context.setattr(anonymization, "anonymize_subject", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            run_due_erasures(now=timezone.now())
    (anonymous_id,) = list_usage_user_ids(acme)["UsageRecord"]
    with tenant_scope(acme.company.tenant_id):  # remove the ID, so that the next run must write it
        UsageRecord.objects.update(user_id=uuid.uuid4())
        Outcome.objects.update(user_id=uuid.uuid4())
    make_completion(acme.company, acme.ada)  # arrives after the interruption

    assert run_due_erasures(now=timezone.now()) == 1
    assert anonymous_id in list_usage_user_ids(acme)["UsageRecord"]


def test_records_delivered_late_are_pseudonymized(acme: TracedTenant) -> None:
    erase(acme)
    make_completion(acme.company, acme.ada)

    pseudonymize_late_records(now=timezone.now())

    assert acme.ada.user_id not in list_usage_user_ids(acme)["UsageRecord"]


@pytest.mark.parametrize("fails_first", [True, False], ids=["fails first", "fails last"])
def test_an_error_in_one_tenant_does_not_delay_another(
    acme: TracedTenant, globex: TracedTenant, fails_first: bool
) -> None:
    broken, healthy = (acme, globex) if fails_first else (globex, acme)
    for traced in (acme, globex):
        request_erasure(traced)
    run_due_erasures(now=timezone.now())
    make_completion(healthy.company, healthy.ada)
    hold_id = place_hold(actor=broken.olga, new=NewHold(name="m", reason="r"), now=timezone.now())
    # A time that Postgres stores and Python cannot read: in UTC, it is in the year 1 BC.
    year_1_bc = datetime.min.replace(tzinfo=fixed_offset(timedelta(hours=14)))
    with tenant_scope(broken.company.tenant_id):
        LegalHold.objects.filter(id=hold_id).update(since=year_1_bc)

    pseudonymize_late_records(now=timezone.now())

    assert healthy.ada.user_id not in list_usage_user_ids(healthy)["UsageRecord"]
    release_hold(actor=broken.olga, hold_id=hold_id, reason="settled", now=timezone.now())


def test_an_erased_user_who_rejoins_is_an_ordinary_member(acme: TracedTenant) -> None:
    request_erasure(acme)
    with pytest.raises(Conflict), tenant_scope(acme.company.tenant_id):  # not erased yet
        rejoin(acme)
    run_due_erasures(now=timezone.now())
    with tenant_scope(acme.company.tenant_id):
        rejoin(acme)
    make_completion(acme.company, acme.ada)

    pseudonymize_late_records(now=timezone.now())

    assert acme.ada.user_id in list_usage_user_ids(acme)["UsageRecord"]


def rejoin(traced: TracedTenant) -> None:
    insert_membership(
        tenant_id=traced.company.tenant_id,
        user_id=traced.ada.user_id,
        role=Role.DEVELOPER,
        now=timezone.now(),
    )


def test_an_erasure_is_retried_after_a_storage_failure(
    acme: TracedTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_erasure(acme)

    def fail(**_: object) -> int:
        raise OSError

    with monkeypatch.context() as context:
        context.setattr(content_erasure, "erase_requested_content", fail)
        num_erased = run_due_erasures(now=timezone.now())

    assert (num_erased, run_due_erasures(now=timezone.now())) == (0, 1)
    # The failed first run anonymized and counted this row; the second run did not count it again.
    assert read_certificate(acme)["rows"]["tenants_apikey"] == 1


def test_only_the_erasing_tenants_exports_expire(acme: TracedTenant, globex: TracedTenant) -> None:
    acme_export, globex_export = make_export(acme.company), make_export(globex.company)

    erase(acme)

    assert view_export(acme.company, uuid.UUID(acme_export)).state is JobState.EXPIRED
    assert view_export(globex.company, uuid.UUID(globex_export)).state is JobState.FINISHED
    with tenant_scope(acme.company.tenant_id):
        assert not ExportObject.objects.exists()


def test_a_running_export_restarts_without_the_erased_user(
    acme: TracedTenant, globex: TracedTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_run, "_SLICE_S", 0.0)
    acme_export = start_export(acme.company, "members")
    globex_export = start_export(globex.company, "members")
    for traced in (acme, globex):  # all data is read, no file is written yet
        assert jobs_run.run_slice_of_oldest_job(traced.company.tenant_id, timezone.now)
    tenant_id = acme.company.tenant_id
    part_ids = sealed_objects.list_object_ids(tenant_id, acme_export, pack_index=0)
    parts = [sealed_objects.read_object(tenant_id, acme_export, part_id) for part_id in part_ids]
    claim = claim_next_job(acme.company.tenant_id, timezone.now)
    assert claim is not None

    erase(acme)

    with pytest.raises(ClaimLost):
        claim.renew()
    assert not sealed_objects.list_object_ids(tenant_id, acme_export, pack_index=0)
    with tenant_scope(acme.company.tenant_id):
        data_keys = DataKey.objects.filter(scope=sealed_objects.build_export_scope(acme_export))
        assert not data_keys.filter(destroyed_at=None).exists()
    globex_id = globex.company.tenant_id
    assert len(sealed_objects.list_object_ids(globex_id, globex_export, pack_index=0)) == 1
    assert any(acme.mark.encode() in zlib.decompress(part) for part in parts)  # before the erasure
    build_exports(acme.company)
    export = view_export(acme.company, acme_export)
    assert (export.state, export.rows_done) == (JobState.FINISHED, len(acme.company.people) - 1)
    assert acme.mark.encode() not in file_of(acme.company, acme_export)


def test_an_account_ends_with_its_last_tenant(acme: TracedTenant, globex: TracedTenant) -> None:
    with tenant_scope(globex.company.tenant_id):
        Membership.objects.create(
            tenant_id=globex.company.tenant_id,
            user_id=acme.ada.user_id,
            role=Role.DEVELOPER,
            created_at=timezone.now(),
        )
    erase(acme)
    email_after_first_erasure = User.objects.get(id=acme.ada.user_id).email
    shown_emails = list_shown_emails(acme)

    request_erasure(globex, user_id=acme.ada.user_id)
    run_due_erasures(now=timezone.now())

    assert acme.mark in email_after_first_erasure
    assert not [email for email in shown_emails if acme.mark in email]
    account = User.objects.get(id=acme.ada.user_id)
    assert (account.name, account.is_active, account.has_usable_password()) == ("", False, False)
    assert account.email.endswith("@erased.invalid")


def list_shown_emails(traced: TracedTenant) -> list[str]:
    """Return the email addresses in the audit log and the consent receipts."""
    entries = list_entries(
        actor=traced.olga, audit_filter=AuditFilter(), limit=100, cursor=None, now=timezone.now()
    ).rows
    emails = [entry.actor_email for entry in entries]
    for receipt in list_receipts(actor=traced.olga, limit=100, cursor=None).rows:
        emails += [receipt.user_email, receipt.actor_email]
    return [email for email in emails if email is not None]


def test_erasing_needs_permission_and_a_valid_request(
    acme: TracedTenant, globex: TracedTenant
) -> None:
    for role in (Role.AUDITOR, Role.BILLING, Role.DEVELOPER):
        with pytest.raises(Forbidden):
            request_erasure(acme, by=acme.company.people[role].actor)
    with pytest.raises(Forbidden):  # only an owner may remove an owner
        request_erasure(acme, by=acme.company.administrator.actor, user_id=acme.olga.user_id)
    with pytest.raises(Conflict):  # the last owner cannot be removed
        request_erasure(acme, user_id=acme.olga.user_id)
    with pytest.raises(NotFound):
        request_erasure(acme, by=globex.olga)
    without_reason = ErasureRequest(acme.ada.user_id, " ")
    with pytest.raises(InvalidValue):
        request_user_erasure(actor=acme.olga, erasure_request=without_reason, now=timezone.now())


def test_a_user_can_be_erased_only_once(acme: TracedTenant) -> None:
    request_erasure(acme)
    with pytest.raises(Conflict):
        request_erasure(acme)
    run_due_erasures(now=timezone.now())
    with pytest.raises(Conflict):
        request_erasure(acme)


def test_the_database_forbids_moving_records_to_another_user(acme: TracedTenant) -> None:
    other_user_id = make_colleague(acme.company).user_id
    for model in (UsageRecord, Outcome, TypingReport):
        with pytest.raises(ProgrammingError), tenant_scope(acme.company.tenant_id):
            model.objects.update(user_id=other_user_id)
    with pytest.raises(ProgrammingError), tenant_scope(acme.company.tenant_id):
        UsageRecord.objects.update(generated_tokens=0)


def test_the_erase_user_command_refuses_while_a_hold_applies(
    acme: TracedTenant, folder: Path
) -> None:
    hold_id = place_hold(actor=acme.olga, new=NewHold(name="m", reason="r"), now=timezone.now())
    arguments = (acme.company.slug, f"{acme.mark}@{acme.company.slug}.example")

    with pytest.raises(CommandError, match="hold"):
        call_command("erase_user", *arguments, reason="x")
    release_hold(actor=acme.olga, hold_id=hold_id, reason="x", now=timezone.now())
    call_command("erase_user", *arguments, reason="x")

    assert find_traces(acme, folder) == set()
    assert read_certificate(acme)["reason"] == "erasure"
