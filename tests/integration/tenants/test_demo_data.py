"""The sample history of the demo tenants is as consistent as real data."""

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from caret.contracts.api_key import KeyKind
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.audit_sinks.delivery import UNKNOWN_HOST
from tenants.compliance.exports.definitions.definitions import PACK
from tenants.compliance.exports.evidence_pack_verification import verify_pack
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.jobs.state_machine import JobState
from tenants.demo.demo_marker import FILLED, SUFFIX
from tenants.identity.api_keys.queries import KeyState, list_keys
from tenants.identity.invitations.queries import InvitationState, read_page_of_invitations
from tenants.identity.members.operations import add_member, create_user
from tenants.models import (
    AlertDelivery,
    AuditEntry,
    AuditSink,
    ConsentReceipt,
    ContentObject,
    DeletionCertificate,
    ExportJob,
    LedgerEntry,
    LegalHold,
    Membership,
    PolicyVersion,
    Tenant,
    TypingReport,
    UsageDay,
    UsageHour,
    UsageRecord,
)
from tenants.policy.data_classes import DataClass
from tenants.privacy.retention.verification import verify_certificate
from tenants.security.audit.export import AuditExportPeriod, write_export
from tenants.security.audit.export_verification import verify_export
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import find_tenant, list_members
from tests.fixtures.companies import GLOBEX_PEOPLE, PASSWORD, make_company
from tests.stack.services import Services

DAYS, PEOPLE = 10, 8  # of sample data


@pytest.fixture(scope="module")
def globex(
    services: Services, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TenantId]:
    """Fill the demo tenant globex with sample data, and yield its ID. Tests only read it."""
    with django_db_blocker.unblock():
        state = tmp_path_factory.mktemp("demo") / "state.json"
        call_command("create_demo_tenants", state=state, stdout=StringIO())
        seed_demo_data("globex")
        tenant_id = find_tenant(slug="globex")
        assert tenant_id is not None
        yield tenant_id


def seed_demo_data(slug: str, *, skip_filled: bool = False) -> str:
    output = StringIO()
    call_command(
        "seed_demo_data",
        slug=[slug],
        days=DAYS,
        people=PEOPLE,
        skip_filled=skip_filled,
        stdout=output,
    )
    return output.getvalue()


def test_the_demo_tenant_has_members_of_all_roles_with_example_addresses(globex: TenantId) -> None:
    members = list_members(tenant_id=globex)

    # Owner, administrator and developer existed before; one user has left, one was erased.
    assert len(members) == PEOPLE + 3 - 2
    assert {member.role for member in members} == set(Role)
    assert all(member.email.endswith(".example") for member in members)


def test_the_tenant_is_marked_as_having_sample_data(globex: TenantId) -> None:
    with tenant_scope(globex):
        entry = AuditEntry.objects.get(tenant_id=globex, action=FILLED)
    row = Tenant.objects.get(id=globex)

    assert row.name == f"Globex Energy{SUFFIX}"
    assert row.created_at < timezone.now() - timedelta(days=DAYS)
    assert "for demonstration" in entry.reason


def test_the_audit_log_verifies_with_its_signed_heads(globex: TenantId) -> None:
    export = io.BytesIO()
    write_export(
        actor=build_system_actor(globex),
        period=AuditExportPeriod(datetime(1970, 1, 1, tzinfo=UTC), timezone.now()),
        out=export,
        keys=load_signing_keys(),
        now=timezone.now(),
    )
    export.seek(0)

    assert verify_export(export, load_signing_keys().public_keys()).num_heads > 2


def test_rollups_agree_with_the_records(globex: TenantId) -> None:
    with tenant_scope(globex):
        records = UsageRecord.objects.filter(tenant_id=globex)
        sums = records.aggregate(
            prompt_tokens=Sum("prompt_tokens"), generated_tokens=Sum("generated_tokens")
        )
        typed_chars = TypingReport.objects.filter(tenant_id=globex).aggregate(
            typed_chars=Sum("chars")
        )
        expected = {"requests": records.count(), **sums, **typed_chars}

        assert expected["requests"] > 500, "too few for a comparison"
        for table in (UsageHour, UsageDay):
            counted_rows = table.objects.filter(tenant_id=globex)
            assert counted_rows.aggregate(**{name: Sum(name) for name in expected}) == expected


def test_the_ledger_balances_and_has_seats_and_tokens(globex: TenantId) -> None:
    with tenant_scope(globex):
        entries = LedgerEntry.objects.filter(tenant_id=globex)
        lines = set(entries.values_list("line", flat=True))

        assert entries.aggregate(sum=Sum("amount_micros"))["sum"] == 0
        assert {"seats", "fast.generated", "quality.generated"} <= lines


def test_every_certificate_verifies(globex: TenantId) -> None:
    with tenant_scope(globex):
        rows = list(DeletionCertificate.objects.filter(tenant_id=globex).order_by("number"))

    verified = [
        verify_certificate(row.document.encode(), load_signing_keys().public_keys()) for row in rows
    ]

    assert [document["number"] for document in verified] == list(range(1, len(rows) + 1))
    # "data_subject" is the certificate of a user's erasure.
    assert {"data_subject", DataClass.CONTENT} <= {
        str(document.get("data_class")) for document in verified
    }


def test_the_evidence_pack_verifies_and_another_export_has_failed(globex: TenantId) -> None:
    with tenant_scope(globex):
        jobs = {
            (row.definition, row.state): row
            for row in ExportJob.objects.filter(tenant_id=globex).order_by("id")
        }

    # In the store, the rows of the exports have a pack index. The pieces of the pack have none.
    pack = jobs[PACK, JobState.FINISHED]
    failed_job = jobs["usage_days", JobState.FAILED]
    with tenant_scope(globex):
        pieces = [
            sealed_objects.read_object(globex, pack.id, object_id)
            for object_id in sealed_objects.list_object_ids(globex, pack.id, pack_index=None)
        ]
    assert verify_pack(io.BytesIO(b"".join(pieces)), load_signing_keys().public_keys())
    assert failed_job.error
    assert ("members", JobState.CANCELLED) in jobs
    assert ("invoices", JobState.FINISHED) in jobs


def test_invitations_keys_and_sinks_are_in_every_state(globex: TenantId) -> None:
    actor, now = build_system_actor(globex), timezone.now()
    invitations = read_page_of_invitations(actor=actor, limit=100, cursor=None, now=now)
    keys = list_keys(actor=actor, limit=100, cursor=None, now=now)
    with tenant_scope(globex):
        sinks = list(AuditSink.objects.filter(tenant_id=globex).order_by("failed_since"))

    assert {row.state for row in invitations.rows} == set(InvitationState)
    assert {row.state for row in keys.rows} == set(KeyState)
    assert {row.kind for row in keys.rows} == set(KeyKind)
    assert [sink.last_error for sink in sinks] == [UNKNOWN_HOST, ""]


def test_policies_have_a_history_and_consents_their_receipts(globex: TenantId) -> None:
    with tenant_scope(globex):
        versions = PolicyVersion.objects.filter(tenant_id=globex).order_by("version")
        version_numbers = list(versions.values_list("version", flat=True))
        assert version_numbers == list(range(1, 8)), "the sample data has seven versions"
        receipts = ConsentReceipt.objects.filter(tenant_id=globex, user_id__isnull=False)
        assert set(receipts.values_list("is_granted", flat=True)) == {True, False}
        content_objects = ContentObject.objects.filter(tenant_id=globex, erasure_id=None)
        assert content_objects.count() > 0
        assert LegalHold.objects.filter(tenant_id=globex, released_at=None).count() == 1


def test_no_alert_is_pending(globex: TenantId) -> None:
    with tenant_scope(globex):
        pending = AlertDelivery.objects.filter(tenant_id=globex, next_attempt_at__isnull=False)
        assert not pending.exists()


def test_a_second_run_is_refused_or_skipped(globex: TenantId) -> None:
    with tenant_scope(globex):
        before = AuditEntry.objects.filter(tenant_id=globex).count()

    with pytest.raises(CommandError, match="already has demo data"):
        seed_demo_data("globex")
    assert "already has demo data" in seed_demo_data("globex", skip_filled=True)

    with tenant_scope(globex):
        assert AuditEntry.objects.filter(tenant_id=globex).count() == before


@pytest.mark.usefixtures("globex")
def test_a_real_tenant_is_refused() -> None:
    company = make_company("initech", GLOBEX_PEOPLE)

    with pytest.raises(CommandError, match="not a demo tenant"):
        seed_demo_data(company.slug)


@pytest.mark.usefixtures("globex")
def test_a_demo_tenant_with_real_users_is_refused() -> None:
    tenant_id = find_tenant(slug="acme")
    assert tenant_id is not None
    now = timezone.now()
    email = f"somebody@{make_company('initech', GLOBEX_PEOPLE).slug}.test"
    user_id = create_user(email=email, name="Somebody", password=PASSWORD, now=now)
    add_member(actor=build_system_actor(tenant_id), user_id=user_id, role=Role.DEVELOPER, now=now)

    with pytest.raises(CommandError, match=r"do not end in \.example"):
        seed_demo_data("acme")


@pytest.mark.usefixtures("globex")
def test_a_demo_tenant_without_members_is_refused() -> None:
    tenant_id = find_tenant(slug="acme")
    assert tenant_id is not None

    with transaction.atomic():
        with tenant_scope(tenant_id):
            Membership.objects.filter(tenant_id=tenant_id).update(ended_at=timezone.now())
        with pytest.raises(CommandError, match="has no members"):
            seed_demo_data("acme")
        transaction.set_rollback(True)  # other tests need the members


def test_an_unknown_tenant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="tenant"):
        seed_demo_data("umbrella")
