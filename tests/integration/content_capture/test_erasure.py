"""Captured content is erased when consent ends or retention expires."""

from pathlib import Path

import pytest
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.signing_keys import signing_keys
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
from tests.integration.content_capture.consenting_tenant import BOTH, Willing, files, sweep


def test_withdrawal_makes_all_unreadable_at_once_and_objects_go(
    acme: Willing, folder: Path
) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    acme.keep(ada, "planted")
    (row,) = acme.objects
    sealed = object_store.get_object(acme.company.tenant_id, row.id)

    acme.agree(ada, NO_CONSENT)

    with pytest.raises(KeyDestroyed):
        open_sealed(acme.company.tenant_id, place=object_store.seal_context(row.id), sealed=sealed)
    sweep()
    assert (acme.objects, files(folder)) == ([], [])


def test_withdrawal_leaves_a_record_that_a_certificate_can_be_made_of(acme: Willing) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    acme.keep(ada, "one", "two")
    (row,) = acme.objects

    acme.agree(ada, NO_CONSENT)
    sweep()

    (record,) = acme.erasures
    assert (record.reason, str(record.user_id)) == ("withdrawn", ada.user_id)
    assert (record.num_objects, record.num_items, record.num_bytes) == (1, 2, row.num_bytes)
    assert record.finished_at is not None
    (key,) = record.keys
    (evidence,) = find_destruction_proofs(
        tenant_id=acme.company.tenant_id, scope=erasure.scope_of(ada.user_id)
    )
    assert (key["id"], key["fingerprint"]) == (str(evidence.key_id), evidence.fingerprint)
    assert not evidence.opens


def test_withdrawal_is_certified_with_keys_that_open_nothing(acme: Willing) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    acme.keep(ada, "one", "two")

    acme.agree(ada, NO_CONSENT)
    sweep()
    sweep()

    alice = acme.company.administrator.actor
    (certificate,) = list_certificates(actor=alice, limit=10, cursor=None).rows
    document = verify_certificate(certificate.document.encode(), signing_keys().public_keys())
    assert (document["data_class"], document["reason"]) == ("captured_content", "withdrawn")
    assert (document["deleted_objects"], document["deleted_items"]) == (1, 2)
    assert [key["opens"] for key in document["keys"]] == [False]
    assert document["keys"][0]["destroyed_at"] is not None


def test_what_others_have_agreed_to_stays(acme: Willing, globex: Willing) -> None:
    ada, alice, gus = (
        acme.company.developer,
        acme.company.administrator,
        globex.company.developer,
    )
    for company, person in ((acme, ada), (acme, alice), (globex, gus)):
        company.agree(person, BOTH)
        company.keep(person, "planted")

    acme.agree(ada, NO_CONSENT)
    sweep()

    assert [str(row.user_id) for row in acme.objects] == [alice.user_id]
    assert len(globex.objects) == 1


def test_the_tenants_withdrawal_erases_all_of_its_users(acme: Willing, folder: Path) -> None:
    for person in (acme.company.developer, acme.company.administrator):
        acme.agree(person)
        acme.keep(person, "planted")

    acme.change_policy(content_capture=None)
    sweep()

    assert (acme.objects, files(folder)) == ([], [])
    assert [record.reason for record in acme.erasures] == ["withdrawn"] * 2


def test_who_agrees_again_finds_nothing_of_before(acme: Willing) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    acme.keep(ada, "before")
    acme.agree(ada, NO_CONSENT)
    acme.agree(ada)

    acme.keep(ada, "after")
    sweep()

    assert len(acme.objects) == 1
    assert acme.objects[0].erasure_id is None


def test_what_is_older_than_the_policys_days_goes(acme: Willing, folder: Path) -> None:
    acme.allow(retention_days=7)
    acme.agree(acme.company.developer)
    acme.keep(acme.company.developer, "planted")

    sweep(days=6.9)
    kept = len(files(folder))
    sweep(days=7.1)

    assert (kept, files(folder), acme.objects) == (1, [], [])
    (record,) = acme.erasures
    assert (record.reason, record.user_id, record.keys) == ("retention", None, [])


def test_what_is_on_legal_hold_outlives_the_policys_days(acme: Willing, folder: Path) -> None:
    acme.allow(retention_days=7)
    acme.agree(acme.company.developer)
    acme.keep(acme.company.developer, "planted")
    place_hold(actor=acme.company.platform, new=NewHold("m", "r"), now=timezone.now())

    sweep(days=7.1)

    assert len(files(folder)) == 1


def test_who_is_no_member_any_more_has_nothing_kept_nor_agreed(acme: Willing, folder: Path) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    acme.keep(ada, "planted")

    remove_member(actor=acme.company.platform, user_id=ada.user_id, reason="", now=timezone.now())
    sweep()
    with tenant_scope(acme.company.tenant_id):
        Membership.objects.filter(user_id=ada.user_id).update(ended_at=None)  # the user rejoins

    assert (acme.objects, files(folder)) == ([], [])
    assert get_own_consent(actor=ada.actor).given == NO_CONSENT


def test_what_a_restored_backup_has_brought_back_goes(acme: Willing, folder: Path) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    acme.keep(ada, "planted")
    with tenant_scope(acme.company.tenant_id):
        Membership.objects.filter(user_id=ada.user_id).update(ended_at=timezone.now())

    sweep()

    assert (acme.objects, files(folder)) == ([], [])
    assert [record.reason for record in acme.erasures] == ["no_consent"]


def test_a_closed_tenant_keeps_nothing(acme: Willing, folder: Path) -> None:
    acme.agree(acme.company.developer)
    acme.keep(acme.company.developer, "planted")
    with tenant_scope(acme.company.tenant_id):
        Tenant.objects.filter(id=acme.company.tenant_id).update(status=TenantStatus.CLOSED)

    sweep()

    assert (acme.objects, files(folder)) == ([], [])


def test_an_object_whose_worker_was_killed_goes(
    acme: Willing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    acme.agree(acme.company.developer)
    with monkeypatch.context() as patch:
        patch.setattr(object_store, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            acme.keep(acme.company.developer, "planted")
    left = len(acme.objects)

    sweep()
    still = len(acme.objects)
    sweep(days=0.1)

    assert (left, still, acme.objects) == (1, 1, [])


def test_an_object_that_arrives_after_the_withdrawal_goes_at_once(
    acme: Willing, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, put = acme.company.developer, object_store.put

    def put_late(*arguments: object) -> None:
        acme.agree(ada, NO_CONSENT)
        sweep()
        put(*arguments)  # type: ignore[arg-type]

    acme.agree(ada)
    monkeypatch.setattr(object_store, "put", put_late)

    done = acme.keep(ada, "planted")

    assert done.kept == 0
    assert files(folder) == []


def test_erasure_that_failed_goes_on_with_the_next_run(
    acme: Willing, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = acme.company.developer
    acme.agree(ada)
    for _ in range(3):
        acme.keep(ada, "planted")
    acme.agree(ada, NO_CONSENT)
    delete, calls = object_store.delete_object, list[object]()

    def failing(*arguments: object) -> None:
        calls.append(arguments)
        if len(calls) == 2:
            raise OSError
        delete(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(object_store, "delete_object", failing)
        sweep()
    (unfinished,) = acme.erasures

    sweep()

    assert unfinished.finished_at is None
    assert (acme.objects, files(folder)) == ([], [])
    assert acme.erasures[0].finished_at is not None
