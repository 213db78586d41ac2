"""Shredding a tenant deletes all data that its users wrote. Evidence and invoices remain."""

import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.utils import timezone

from caret.contracts.snapshot import SNAPSHOTS, TenantStatus, decode_snapshot
from caret.contracts.usage import USAGE_FIELD, USAGE_STREAM, encode_records
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis
from tenants.compliance.data_subjects import tenant_purge
from tenants.identity.members.tenant_status import set_status
from tenants.models import AuditEntry, DirtyHour, Outcome, PolicyVersion, Tenant, TenantKey
from tenants.policy.document import DEFAULT_POLICY
from tenants.privacy.content_capture import object_store
from tenants.privacy.retention.operations import NewHold, place_hold, release_hold
from tenants.security.encryption.envelope import SealContext
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.operations import seal_in_scope
from tenants.security.encryption.queries import open_sealed
from tenants.usage.ingestion.operations import ingest_all_entries
from tenants.usage.ingestion.redis_stream import REJECTED_STREAM, UsageStream
from tests.fixtures.users import make_domain, make_team
from tests.integration.content_capture.consenting_tenant import list_files
from tests.integration.data_subjects.test_erasure import find_traces, read_certificate
from tests.integration.data_subjects.traces import TracedTenant
from tests.integration.tenants.test_ingest import outcome


def set_statuses(traced: TracedTenant, *statuses: TenantStatus) -> None:
    for status in statuses:
        set_status(actor=traced.company.platform, status=status, reason="end", now=timezone.now())


def close_tenant(traced: TracedTenant) -> None:
    set_statuses(traced, TenantStatus.SUSPENDED, TenantStatus.CLOSING, TenantStatus.CLOSED)


def shred_tenant(traced: TracedTenant) -> None:
    call_command(
        "erase_tenant", traced.company.slug, confirm=traced.company.slug, reason="contract, 12"
    )


def add_tenant_data(traced: TracedTenant) -> None:
    """Add data that belongs to the tenant and not to a user."""
    tenant_id = traced.company.tenant_id
    make_team(traced.company, f"team {traced.mark}")
    make_domain(traced.company, f"{traced.mark}.example", verified=True)
    traced.tenant.change_policy(content_exclusion={f"{traced.mark}/shop": ["*"]})
    # Captured content without a row in the database, as a killed worker leaves it.
    object_store.store_object(tenant_id, uuid.uuid4(), traced.mark.encode())
    # The Redis key has braces around the tenant's ID: Redis Cluster's hash tag.
    connect_to_redis().set(f"caret:spend:{{{tenant_id}}}:x", traced.mark)
    connect_to_redis().xadd(REJECTED_STREAM, {"reason": "x", "data": f"{tenant_id} {traced.mark}"})
    # Redis keeps both entries of the stream in one node, where deleted text could remain.
    connect_to_redis().xadd(REJECTED_STREAM, {"reason": "another's", "data": "not to be deleted"})


def test_a_shredded_tenants_text_is_in_no_table_stream_or_file(
    acme: TracedTenant, globex: TracedTenant, folder: Path
) -> None:
    add_tenant_data(acme)
    globex_traces = find_traces(globex, folder)
    epoch_before = Tenant.objects.get(id=acme.company.tenant_id).cache_epoch
    seal_context = SealContext("x", "y", "z")
    sealed = seal_in_scope(
        acme.company.tenant_id, "day:1", context=seal_context, data=b"x", now=timezone.now()
    )
    close_tenant(acme)
    before = find_traces(acme, folder)

    shred_tenant(acme)

    assert {"tenants_team", "tenants_policyversion", "caret:usage:rejected"} <= before
    # The audit log is evidence of what administrators set. It is kept as long as the law requires.
    assert find_traces(acme, folder) == {"tenants_auditentry"}
    assert find_traces(globex, folder) == globex_traces
    assert len(list_files(folder)) == 1  # the other tenant's
    with pytest.raises(KeyDestroyed):
        open_sealed(acme.company.tenant_id, context=seal_context, envelope=sealed)
    with tenant_scope(acme.company.tenant_id):
        assert not TenantKey.objects.exclude(wrapped=None).exists()
    # A new cache epoch: no engine uses the tenant's prefix cache any more.
    assert Tenant.objects.get(id=acme.company.tenant_id).cache_epoch > epoch_before


def test_late_usage_records_of_a_shredded_tenant_are_rejected_without_their_data(
    acme: TracedTenant, globex: TracedTenant
) -> None:
    stream = UsageStream(connect_to_redis(), consumer="test", claim_after_ms=0)
    ingest_all_entries(stream)  # left by earlier tests
    close_tenant(acme)
    shred_tenant(acme)
    for traced in (acme, globex):
        late_outcome = msgspec.structs.replace(outcome(traced.company), user_id=traced.ada.user_id)
        connect_to_redis().xadd(USAGE_STREAM, {USAGE_FIELD: encode_records([late_outcome])})

    ingestion = ingest_all_entries(stream)

    assert (ingestion.records, ingestion.rejected) == (1, 1)
    with tenant_scope(acme.company.tenant_id):
        assert not Outcome.objects.filter(user_id=acme.ada.user_id).exists()
        assert not DirtyHour.objects.exists()
    rejected: Any = connect_to_redis().xrevrange(REJECTED_STREAM, count=1)
    assert rejected[0][1] == {b"reason": b"tenant_id: shredded", b"data": b""}


def test_gateways_get_an_empty_snapshot_of_a_shredded_tenant(acme: TracedTenant) -> None:
    close_tenant(acme)
    shred_tenant(acme)

    text = connect_to_redis().hget(SNAPSHOTS, acme.company.tenant_id)
    snapshot = decode_snapshot(text)  # type: ignore[arg-type]  # the snapshot exists
    assert snapshot.status is TenantStatus.CLOSED
    assert (snapshot.policy, snapshot.overrides) == (DEFAULT_POLICY, ())


def test_the_certificate_lists_every_key_as_destroyed(acme: TracedTenant) -> None:
    close_tenant(acme)
    shred_tenant(acme)

    facts = read_certificate(acme)

    assert (facts["reason"], facts["user_id"], facts["data_class"]) == ("shredding", None, "tenant")
    assert None in {key["scope"] for key in facts["keys"]}  # None: the tenant key
    assert not any(key["opens"] for key in facts["keys"])
    assert facts["rows"]["tenants_usage_hour"] >= 1
    with tenant_scope(acme.company.tenant_id):
        assert AuditEntry.objects.filter(action="tenant.erased").count() == 1


def test_shredding_requires_a_closed_tenant_confirmation_and_no_hold(
    acme: TracedTenant, folder: Path
) -> None:
    new_hold = NewHold(name="m", reason="r", user_id=uuid.UUID(acme.ada.user_id))
    hold_id = place_hold(actor=acme.company.platform, new=new_hold, now=timezone.now())
    for status in (TenantStatus.SUSPENDED, TenantStatus.CLOSING):
        with pytest.raises(CommandError, match="closed"):
            shred_tenant(acme)
        set_statuses(acme, status)
    with pytest.raises(CommandError, match="closed"):
        shred_tenant(acme)
    with pytest.raises(CommandError, match="must repeat"):
        call_command("erase_tenant", acme.company.slug, confirm="globex", reason="x")
    set_statuses(acme, TenantStatus.CLOSED)
    with pytest.raises(CommandError, match="hold"):
        shred_tenant(acme)

    assert "tenants_user" in find_traces(acme, folder)
    release_hold(actor=acme.company.platform, hold_id=hold_id, reason="x", now=timezone.now())
    shred_tenant(acme)
    with pytest.raises(CommandError, match="already requested"):
        shred_tenant(acme)


def test_an_interrupted_shredding_can_be_resumed(
    acme: TracedTenant, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_tenant(acme)
    with monkeypatch.context() as context:
        # As if the process was killed: no `except Exception` catches the error of pytest.fail.
        context.setattr(tenant_purge, "_purge_redis", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            shred_tenant(acme)
    with tenant_scope(acme.company.tenant_id):  # the first step destroys the keys
        assert not TenantKey.objects.exclude(wrapped=None).exists()

    shred_tenant(acme)

    assert find_traces(acme, folder) == set()


def test_an_interrupted_shredding_counts_each_row_once(
    acme: TracedTenant, globex: TracedTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    for traced in (acme, globex):
        close_tenant(traced)
    for interrupted_step in ("_anonymize_rows", "_purge_redis"):
        with monkeypatch.context() as context:
            context.setattr(tenant_purge, interrupted_step, lambda *_: pytest.fail("killed"))
            with pytest.raises(pytest.fail.Exception):
                shred_tenant(acme)

    shred_tenant(acme)
    shred_tenant(globex)  # the same data, without an interruption

    assert read_certificate(acme)["rows"] == read_certificate(globex)["rows"]


def test_a_shredding_without_redis_says_what_is_left_and_can_be_repeated(
    acme: TracedTenant, folder: Path
) -> None:
    close_tenant(acme)
    connect_to_redis.cache_clear()
    with (
        override_settings(REDIS_URL="unix:///nonexistent/valkey.sock"),
        pytest.raises(CommandError, match=r"keys are destroyed.*run the command again"),
    ):
        shred_tenant(acme)
    connect_to_redis.cache_clear()

    shred_tenant(acme)

    assert find_traces(acme, folder) == set()


def test_a_shredding_with_a_broken_object_store_says_what_is_left(
    acme: TracedTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> int:
        raise OSError("disk error")

    close_tenant(acme)
    monkeypatch.setattr(object_store, "delete_all_objects", fail)

    with pytest.raises(CommandError, match=r"keys are destroyed.*disk error"):
        shred_tenant(acme)


def test_policies_of_a_tenant_that_is_not_shredded_cannot_be_deleted(acme: TracedTenant) -> None:
    with tenant_scope(acme.company.tenant_id):
        before = PolicyVersion.objects.count()
        PolicyVersion.objects.all().delete()  # row-level security: it deletes no row
        assert PolicyVersion.objects.count() == before
