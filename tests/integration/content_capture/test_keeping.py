"""Content is stored only with consent, sealed, in a folder or a bucket."""

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
from tenants.base.redis_connection import connect
from tenants.identity.members.tenant_status import set_status
from tenants.models import ContentObject
from tenants.privacy.consent.consent import NO_CONSENT
from tenants.privacy.content_capture import object_store
from tenants.security.encryption.queries import open_sealed
from tests.integration.content_capture.consenting_tenant import (
    BOTH,
    Willing,
    completion,
    files,
    sweep,
    training,
    work,
)


def test_with_both_keys_turned_content_is_kept_sealed(acme: Willing, folder: Path) -> None:
    ada = acme.company.developer
    acme.agree(ada)

    done = acme.keep(ada, "planted one", "planted two")

    (row,) = acme.objects
    (file,) = files(folder)
    assert (done.kept, row.num_items, str(row.user_id)) == (2, 2, ada.user_id)
    assert row.stored_at is not None
    assert len(row.request_ids) == 2
    assert b"planted" not in file.read_bytes()
    opened = open_sealed(
        acme.company.tenant_id,
        place=object_store.seal_context(row.id),
        sealed=object_store.get_object(acme.company.tenant_id, row.id),
    )
    assert [json.loads(line)["prefix"] for line in opened.splitlines()] == [
        "planted one",
        "planted two",
    ]


def test_what_was_captured_before_the_last_yes_is_not_kept(acme: Willing, folder: Path) -> None:
    """Captured with consent, then withdrawn and given again before a worker stored it."""
    ada = acme.company.developer
    acme.agree(ada)
    acme.send(completion(ada, "captured before"))
    acme.agree(ada, NO_CONSENT)
    acme.agree(ada)
    acme.send(completion(ada, "captured after"))

    done = work()

    (row,) = acme.objects
    assert (done.kept, done.dropped) == (1, {"no consent": 1})
    assert (row.num_items, len(row.request_ids)) == (1, 1)
    opened = open_sealed(
        acme.company.tenant_id,
        place=object_store.seal_context(row.id),
        sealed=object_store.get_object(acme.company.tenant_id, row.id),
    )
    assert json.loads(opened)["prefix"] == "captured after"


def test_what_was_captured_before_the_tenant_allowed_it_again_is_not_kept(acme: Willing) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    early = completion(ada, "captured before")
    acme.change_policy(telemetry=None)
    acme.allow()
    acme.agree(ada)
    acme.send(early)

    assert work().kept == 0


def test_what_was_captured_before_the_yes_to_training_trains_nothing(acme: Willing) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    acme.send(completion(ada, "captured before"))
    acme.agree(ada, BOTH)
    work()
    acme.keep(ada, "captured after")

    assert [row.is_for_training for row in acme.objects] == [False, True]


def test_consent_is_asked_of_one_member_not_of_all(acme: Willing) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    with CaptureQueriesContext(connection) as captured:
        acme.keep(ada, "planted")

    asked = [each["sql"] for each in captured if "tenants_membership" in each["sql"]]
    assert asked
    assert all(ada.user_id in sql or ada.user_id.replace("-", "") in sql for sql in asked)


def test_objects_are_for_their_owner_only(acme: Willing, folder: Path) -> None:
    acme.agree(acme.company.developer)

    acme.keep(acme.company.developer, "planted")

    (file,) = files(folder)
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0


def test_what_a_gateway_sends_of_who_has_not_agreed_is_dropped(acme: Willing, folder: Path) -> None:
    acme.agree(acme.company.administrator)

    done = acme.keep(acme.company.developer, "planted")

    assert (done.kept, done.dropped) == (0, {"no consent": 1})
    assert (acme.objects, files(folder)) == ([], [])


def test_what_was_under_way_when_consent_ended_is_dropped(acme: Willing, folder: Path) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    acme.send(completion(ada, "planted"))

    acme.agree(ada, NO_CONSENT)

    assert work().dropped == {"no consent": 1}
    assert files(folder) == []


def test_a_suspended_tenants_content_is_dropped(acme: Willing) -> None:
    acme.agree(acme.company.developer)
    set_status(
        actor=acme.company.platform,
        status=TenantStatus.SUSPENDED,
        reason="a test",
        now=timezone.now(),
    )

    assert acme.keep(acme.company.developer, "planted").dropped == {"no consent": 1}


def test_what_is_no_message_of_ours_is_dropped(acme: Willing) -> None:
    connect().xadd(CONTENT, {"sealed": b"garbage"})

    assert work().dropped == {"unreadable: format": 1}


def test_content_under_the_neighbours_name_is_nobodys(acme: Willing, globex: Willing) -> None:
    """A user of acme has consented there, but not at globex, whose gateway claims it."""
    acme.agree(acme.company.developer)

    globex.send(completion(acme.company.developer, "planted"))

    assert work().dropped == {"no consent": 1}
    assert (acme.objects, globex.objects) == ([], [])


def test_an_object_that_was_moved_to_the_neighbour_does_not_open(
    acme: Willing, globex: Willing
) -> None:
    for each in (acme, globex):
        each.agree(each.company.developer)
        each.keep(each.company.developer, "planted")
    (row,) = acme.objects
    sealed = object_store.get_object(acme.company.tenant_id, row.id)

    with pytest.raises(DecryptionFailed):
        open_sealed(
            globex.company.tenant_id, place=object_store.seal_context(row.id), sealed=sealed
        )


def test_content_is_kept_in_and_erased_from_a_bucket(
    acme: Willing, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    ada = acme.company.developer
    acme.agree(ada, BOTH)
    with mock_aws():
        bucket = boto3.resource("s3").create_bucket(Bucket="caret-content")
        stored = storage_from("CARET_CONTENT_STORAGE", "s3://caret-content/of/caret")
        settings.STORAGES = {**settings.STORAGES, "telemetry": stored}

        acme.keep(ada, "planted")

        (held,) = bucket.objects.all()
        (row,) = acme.objects
        assert held.key == f"of/caret/{acme.company.tenant_id}/{row.id}"
        assert b"planted" not in held.get()["Body"].read()
        assert training(acme, tmp_path) == ["planted"]
        acme.agree(ada, NO_CONSENT)
        sweep()
        assert list(bucket.objects.all()) == []


def test_the_neighbour_sees_no_object_of_ours(acme: Willing, globex: Willing) -> None:
    acme.agree(acme.company.developer)
    acme.keep(acme.company.developer, "planted")

    with tenant_scope(globex.company.tenant_id):
        assert ContentObject.objects.count() == 0
