"""Captured content is erased when its consent ends or its retention period expires."""

from pathlib import Path

import pytest
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.identity.member_lifecycle import remove_member
from tenants.models import Membership, Tenant
from tenants.privacy.consent.consent import NO_CONSENT
from tenants.privacy.consent.queries import get_own_consent
from tenants.privacy.content_capture import erasure, object_store
from tenants.privacy.retention.operations import NewHold, place_hold
from tenants.privacy.retention.queries import list_certificates
from tenants.privacy.retention.verification import verify_certificate
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.queries import find_destruction_proofs, open_sealed
from tests.integration.content_capture.consenting_tenant import (
    CAPTURE_AND_TRAINING_CONSENT,
    ConsentingTenant,
    erase_due_content,
    list_files,
)


def test_withdrawing_consent_destroys_the_key_immediately_and_deletes_objects(
    acme: ConsentingTenant, folder: Path
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    acme.capture(ada, "planted")
    (row,) = acme.objects
    sealed = object_store.read_object(acme.company.tenant_id, row.id)

    acme.give_consent(ada, NO_CONSENT)

    with pytest.raises(KeyDestroyed):
        open_sealed(
            acme.company.tenant_id, context=object_store.build_seal_context(row.id), envelope=sealed
        )
    erase_due_content()
    assert (acme.objects, list_files(folder)) == ([], [])


def test_withdrawing_consent_leaves_a_record_for_the_certificate(acme: ConsentingTenant) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    acme.capture(ada, "one", "two")
    (row,) = acme.objects

    acme.give_consent(ada, NO_CONSENT)
    erase_due_content()

    (record,) = acme.erasures
    assert (record.reason, str(record.user_id)) == ("withdrawn", ada.user_id)
    assert (record.num_objects, record.num_items, record.num_bytes) == (1, 2, row.num_bytes)
    assert record.finished_at is not None
    (key,) = record.keys
    (evidence,) = find_destruction_proofs(
        tenant_id=acme.company.tenant_id, scope=erasure.build_key_scope(ada.user_id)
    )
    assert (key["id"], key["fingerprint"]) == (str(evidence.key_id), evidence.fingerprint)
    assert not evidence.opens  # the encryption key opens no data any more


def test_the_certificate_of_a_withdrawal_proves_that_the_keys_are_destroyed(
    acme: ConsentingTenant,
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    acme.capture(ada, "one", "two")

    acme.give_consent(ada, NO_CONSENT)
    erase_due_content()
    erase_due_content()  # A second run must not issue a second certificate.

    alice = acme.company.administrator.actor
    (certificate,) = list_certificates(actor=alice, limit=10, cursor=None).rows
    document = verify_certificate(certificate.document.encode(), load_signing_keys().public_keys())
    assert (document["data_class"], document["reason"]) == ("captured_content", "withdrawn")
    assert (document["deleted_objects"], document["deleted_items"]) == (1, 2)
    assert [key["opens"] for key in document["keys"]] == [False]
    assert document["keys"][0]["destroyed_at"] is not None


def test_a_withdrawal_does_not_erase_content_of_other_users(
    acme: ConsentingTenant, globex: ConsentingTenant
) -> None:
    ada, alice, gus = (
        acme.company.developer,
        acme.company.administrator,
        globex.company.developer,
    )
    for tenant, person in ((acme, ada), (acme, alice), (globex, gus)):
        tenant.give_consent(person, CAPTURE_AND_TRAINING_CONSENT)
        tenant.capture(person, "planted")

    acme.give_consent(ada, NO_CONSENT)
    erase_due_content()

    assert [str(row.user_id) for row in acme.objects] == [alice.user_id]
    assert len(globex.objects) == 1


def test_the_tenants_withdrawal_erases_the_content_of_all_its_users(
    acme: ConsentingTenant, folder: Path
) -> None:
    for person in (acme.company.developer, acme.company.administrator):
        acme.give_consent(person)
        acme.capture(person, "planted")

    acme.change_policy(content_capture=None)
    erase_due_content()

    assert (acme.objects, list_files(folder)) == ([], [])
    assert [record.reason for record in acme.erasures] == ["withdrawn"] * 2


def test_content_from_before_a_withdrawal_is_erased_despite_a_new_consent(
    acme: ConsentingTenant,
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    acme.capture(ada, "before")
    acme.give_consent(ada, NO_CONSENT)
    acme.give_consent(ada)

    acme.capture(ada, "after")
    erase_due_content()

    (row,) = acme.objects
    assert row.erasure_id is None  # no erasure includes the content captured after the new consent


def test_content_older_than_the_retention_is_deleted(acme: ConsentingTenant, folder: Path) -> None:
    acme.allow_content_capture(retention_days=7)
    acme.give_consent(acme.company.developer)
    acme.capture(acme.company.developer, "planted")

    erase_due_content(days=6.9)
    num_before_expiry = len(list_files(folder))
    erase_due_content(days=7.1)

    assert (num_before_expiry, list_files(folder), acme.objects) == (1, [], [])
    (record,) = acme.erasures
    assert (record.reason, record.user_id, record.keys) == ("retention", None, [])


def test_content_on_legal_hold_outlives_the_retention(acme: ConsentingTenant, folder: Path) -> None:
    acme.allow_content_capture(retention_days=7)
    acme.give_consent(acme.company.developer)
    acme.capture(acme.company.developer, "planted")
    place_hold(actor=acme.company.platform, new=NewHold(name="m", reason="r"), now=timezone.now())

    erase_due_content(days=7.1)

    assert len(list_files(folder)) == 1


def test_removing_a_member_erases_their_content_and_ends_their_consent(
    acme: ConsentingTenant, folder: Path
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    acme.capture(ada, "planted")

    remove_member(actor=acme.company.platform, user_id=ada.user_id, reason="", now=timezone.now())
    erase_due_content()
    with tenant_scope(acme.company.tenant_id):
        Membership.objects.filter(user_id=ada.user_id).update(ended_at=None)  # the user rejoins

    assert (acme.objects, list_files(folder)) == ([], [])
    assert get_own_consent(actor=ada.actor).consent == NO_CONSENT


def test_restored_content_without_consent_is_erased(acme: ConsentingTenant, folder: Path) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    acme.capture(ada, "planted")
    # As after a restore: the content is back, but its user is no longer a member.
    with tenant_scope(acme.company.tenant_id):
        Membership.objects.filter(user_id=ada.user_id).update(ended_at=timezone.now())

    erase_due_content()

    assert (acme.objects, list_files(folder)) == ([], [])
    assert [record.reason for record in acme.erasures] == ["no_consent"]


def test_the_content_of_a_closed_tenant_is_erased(acme: ConsentingTenant, folder: Path) -> None:
    acme.give_consent(acme.company.developer)
    acme.capture(acme.company.developer, "planted")
    with tenant_scope(acme.company.tenant_id):
        Tenant.objects.filter(id=acme.company.tenant_id).update(status=TenantStatus.CLOSED)

    erase_due_content()

    assert (acme.objects, list_files(folder)) == ([], [])


def test_an_object_left_by_a_killed_worker_is_deleted(
    acme: ConsentingTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker inserts the object's row before it stores the object."""

    def kill_worker(*_: object) -> None:
        raise KeyboardInterrupt

    acme.give_consent(acme.company.developer)
    with monkeypatch.context() as patch:
        patch.setattr(object_store, "store_object", kill_worker)
        with pytest.raises(KeyboardInterrupt):
            acme.capture(acme.company.developer, "planted")
    num_rows_after_kill = len(acme.objects)

    erase_due_content()
    num_rows_after_first_run = len(acme.objects)
    erase_due_content(days=0.1)  # 2.4 hours, later than erasure.MAX_UNSTORED (an hour)

    assert (num_rows_after_kill, num_rows_after_first_run, acme.objects) == (1, 1, [])


def test_an_object_stored_after_the_withdrawal_is_deleted_immediately(
    acme: ConsentingTenant, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, store_object = acme.company.developer, object_store.store_object

    def store_after_withdrawal(*arguments: object) -> None:
        acme.give_consent(ada, NO_CONSENT)
        erase_due_content()
        store_object(*arguments)  # type: ignore[arg-type]

    acme.give_consent(ada)
    monkeypatch.setattr(object_store, "store_object", store_after_withdrawal)

    ingestion = acme.capture(ada, "planted")

    assert ingestion.num_stored == 0
    assert list_files(folder) == []


def test_a_failed_erasure_continues_with_the_next_run(
    acme: ConsentingTenant, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)
    for _ in range(3):
        acme.capture(ada, "planted")
    acme.give_consent(ada, NO_CONSENT)
    delete, calls = object_store.delete_object, list[object]()

    def fail_at_second_call(*arguments: object) -> None:
        calls.append(arguments)
        if len(calls) == 2:
            raise OSError
        delete(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(object_store, "delete_object", fail_at_second_call)
        erase_due_content()
    (unfinished,) = acme.erasures

    erase_due_content()

    assert unfinished.finished_at is None
    assert (acme.objects, list_files(folder)) == ([], [])
    assert acme.erasures[0].finished_at is not None
