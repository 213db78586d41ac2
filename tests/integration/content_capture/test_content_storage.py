"""Content is stored only with consent, and sealed (encrypted), in a folder or in a bucket."""

import json
from pathlib import Path

import boto3
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from moto import mock_aws
from pytest_django import Settings

from caret.contracts.captured_content import CONTENT
from caret.contracts.snapshot import TenantStatus
from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.postgres.tenant_scope import tenant_scope
from caret.settings.service_urls import storage_from
from tenants.base.redis_connection import connect_to_redis
from tenants.identity.members.tenant_status import set_status
from tenants.models import ContentObject
from tenants.privacy.consent.consent import NO_CONSENT
from tenants.privacy.content_capture import object_store
from tenants.security.encryption.queries import open_sealed
from tests.integration.content_capture.consenting_tenant import (
    CAPTURE_AND_TRAINING_CONSENT,
    ConsentingTenant,
    erase_due_content,
    export_training_prefixes,
    ingest_queued,
    list_files,
    make_captured_completion,
)


def test_content_is_stored_sealed_with_consent_of_tenant_and_user(
    acme: ConsentingTenant, folder: Path
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)

    ingestion = acme.capture(ada, "planted one", "planted two")

    (row,) = acme.objects
    (file,) = list_files(folder)
    assert (ingestion.num_stored, row.num_items, str(row.user_id)) == (2, 2, ada.user_id)
    assert row.stored_at is not None
    assert len(row.request_ids) == 2
    assert b"planted" not in file.read_bytes()
    content = open_sealed(
        acme.company.tenant_id,
        context=object_store.build_seal_context(row.id),
        envelope=object_store.read_object(acme.company.tenant_id, row.id),
    )
    assert [json.loads(line)["prefix"] for line in content.splitlines()] == [
        "planted one",
        "planted two",
    ]


def test_content_captured_before_the_current_consent_is_dropped(acme: ConsentingTenant) -> None:
    """The user withdraws consent and gives it again before a worker stores the content."""
    ada = acme.company.developer
    acme.give_consent(ada)
    acme.send_items(make_captured_completion(ada, "captured before"))
    acme.give_consent(ada, NO_CONSENT)
    acme.give_consent(ada)
    acme.send_items(make_captured_completion(ada, "captured after"))

    ingestion = ingest_queued()

    (row,) = acme.objects
    assert (ingestion.num_stored, ingestion.dropped) == (1, {"no consent": 1})
    assert (row.num_items, len(row.request_ids)) == (1, 1)
    content = open_sealed(
        acme.company.tenant_id,
        context=object_store.build_seal_context(row.id),
        envelope=object_store.read_object(acme.company.tenant_id, row.id),
    )
    assert json.loads(content)["prefix"] == "captured after"


def test_content_captured_before_the_tenant_allowed_it_again_is_dropped(
    acme: ConsentingTenant,
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    captured_before = make_captured_completion(ada, "captured before")
    acme.change_policy(content_capture=None)
    acme.allow_content_capture()
    acme.give_consent(ada)
    acme.send_items(captured_before)

    assert ingest_queued().dropped == {"no consent": 1}
    assert acme.objects == []


def test_content_captured_before_the_training_consent_is_not_for_training(
    acme: ConsentingTenant,
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    acme.send_items(make_captured_completion(ada, "captured before"))
    acme.give_consent(ada, CAPTURE_AND_TRAINING_CONSENT)
    ingest_queued()
    acme.capture(ada, "captured after")

    assert [row.is_for_training for row in acme.objects] == [False, True]


def test_an_object_with_an_item_from_before_the_training_consent_is_not_for_training(
    acme: ConsentingTenant,
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    acme.send_items(make_captured_completion(ada, "captured before"))
    acme.give_consent(ada, CAPTURE_AND_TRAINING_CONSENT)
    acme.send_items(make_captured_completion(ada, "captured after"))
    ingest_queued()

    assert [(row.num_items, row.is_for_training) for row in acme.objects] == [(2, False)]


def test_checking_consent_reads_only_the_users_membership(acme: ConsentingTenant) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    with CaptureQueriesContext(connection) as captured:
        acme.capture(ada, "planted")

    membership_queries = [
        query["sql"] for query in captured if "tenants_membership" in query["sql"]
    ]
    assert membership_queries
    # The user's ID has hyphens in some queries, and none in others.
    assert all(
        ada.user_id in sql or ada.user_id.replace("-", "") in sql for sql in membership_queries
    )


def test_stored_objects_are_private_to_the_file_owner(acme: ConsentingTenant, folder: Path) -> None:
    acme.give_consent(acme.company.developer)

    acme.capture(acme.company.developer, "planted")

    (file,) = list_files(folder)
    # No permissions for the group and for others.
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0


def test_content_of_a_user_without_consent_is_dropped(acme: ConsentingTenant, folder: Path) -> None:
    acme.give_consent(acme.company.administrator)

    ingestion = acme.capture(acme.company.developer, "planted")

    assert (ingestion.num_stored, ingestion.dropped) == (0, {"no consent": 1})
    assert (acme.objects, list_files(folder)) == ([], [])


def test_content_still_queued_at_a_withdrawal_is_dropped(
    acme: ConsentingTenant, folder: Path
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    acme.send_items(make_captured_completion(ada, "planted"))

    acme.give_consent(ada, NO_CONSENT)

    assert ingest_queued().dropped == {"no consent": 1}
    assert list_files(folder) == []


def test_a_suspended_tenants_content_is_dropped(acme: ConsentingTenant) -> None:
    acme.give_consent(acme.company.developer)
    set_status(
        actor=acme.company.platform,
        status=TenantStatus.SUSPENDED,
        reason="a test",
        now=timezone.now(),
    )

    assert acme.capture(acme.company.developer, "planted").dropped == {"no consent": 1}


def test_an_unreadable_message_is_dropped(acme: ConsentingTenant) -> None:
    connect_to_redis().xadd(CONTENT, {"sealed": b"garbage"})

    assert ingest_queued().dropped == {"unreadable: format": 1}


def test_content_sent_by_another_tenant_for_a_user_is_dropped(
    acme: ConsentingTenant, globex: ConsentingTenant
) -> None:
    """The content has the ID of a user who has consented in acme, and is no member of globex."""
    acme.give_consent(acme.company.developer)

    globex.send_items(make_captured_completion(acme.company.developer, "planted"))

    assert ingest_queued().dropped == {"no consent": 1}
    assert (acme.objects, globex.objects) == ([], [])


def test_an_object_moved_to_another_tenant_cannot_be_opened(
    acme: ConsentingTenant, globex: ConsentingTenant
) -> None:
    for tenant in (acme, globex):
        tenant.give_consent(tenant.company.developer)
        tenant.capture(tenant.company.developer, "planted")
    (row,) = acme.objects
    sealed = object_store.read_object(acme.company.tenant_id, row.id)

    with pytest.raises(DecryptionFailed):
        open_sealed(
            globex.company.tenant_id,
            context=object_store.build_seal_context(row.id),
            envelope=sealed,
        )


def test_content_is_stored_in_and_erased_from_a_bucket(
    acme: ConsentingTenant, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    ada = acme.company.developer
    acme.give_consent(ada, CAPTURE_AND_TRAINING_CONSENT)
    with mock_aws():
        bucket = boto3.resource("s3").create_bucket(Bucket="caret-content")
        storage = storage_from("CARET_CONTENT_STORAGE", "s3://caret-content/of/caret")
        settings.STORAGES = {**settings.STORAGES, "content": storage}

        acme.capture(ada, "planted")

        (stored_object,) = bucket.objects.all()
        (row,) = acme.objects
        assert stored_object.key == f"of/caret/{acme.company.tenant_id}/{row.id}"
        assert b"planted" not in stored_object.get()["Body"].read()
        assert export_training_prefixes(acme, tmp_path) == ["planted"]
        acme.give_consent(ada, NO_CONSENT)
        erase_due_content()
        assert list(bucket.objects.all()) == []


def test_another_tenant_sees_no_objects(acme: ConsentingTenant, globex: ConsentingTenant) -> None:
    acme.give_consent(acme.company.developer)
    acme.capture(acme.company.developer, "planted")

    with tenant_scope(globex.company.tenant_id):
        assert ContentObject.objects.count() == 0
