"""Back up, erase a user or a tenant, lose all data, restore: the same data is erased again.

A tombstone records each erasure outside of the database, so that a restore can repeat it.
"""

from pathlib import Path

import pytest
from django.core.files.storage import storages
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import tombstones
from tenants.base.permissions import Role
from tenants.compliance.data_subjects import erasure_tombstones
from tenants.compliance.data_subjects.erasure_worker import run_due_erasures
from tenants.compliance.data_subjects.operations import (
    ErasureRequest,
    request_tenant_erasure,
    request_user_erasure,
)
from tenants.identity.members.tenant_status import set_status
from tenants.models import (
    Erasure,
    Membership,
    Tenant,
    User,
)
from tenants.privacy.retention.operations import NewHold, place_hold, release_hold
from tests.fixtures.companies import Company, Person
from tests.integration.content_capture.backup_restore import (
    back_up,
    empty_database,
    replay_erasures,
    restore,
)
from tests.integration.content_capture.consenting_tenant import ConsentingTenant
from tests.stack.services import Services


def request_erasure(company: Company, person: Person) -> None:
    erasure_request = ErasureRequest(person.user_id, "a letter")
    request_user_erasure(
        actor=company.people[Role.OWNER].actor, erasure_request=erasure_request, now=timezone.now()
    )


def close_tenant(company: Company) -> None:
    for status in (TenantStatus.SUSPENDED, TenantStatus.CLOSING, TenantStatus.CLOSED):
        set_status(actor=company.platform, status=status, reason="end", now=timezone.now())


def test_a_user_erased_after_the_backup_is_erased_again(
    services: Services,
    backup: tuple[Path, Path],
    acme: ConsentingTenant,
    globex: ConsentingTenant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada, alice, gus = (
        acme.company.developer,
        acme.company.administrator,
        globex.company.developer,
    )
    request_erasure(acme.company, alice)
    run_due_erasures(now=timezone.now())
    back_up(backup)
    request_erasure(acme.company, ada)
    run_due_erasures(now=timezone.now())

    with empty_database(services, monkeypatch):
        output = restore(backup)
        with tenant_scope(acme.company.tenant_id):
            ended_at = Membership.objects.get(user_id=ada.user_id).ended_at
        second_output = replay_erasures()
        run_due_erasures(now=timezone.now())
        with tenant_scope(acme.company.tenant_id):
            erasures = Erasure.objects.order_by("id")
            erased_user_ids = [str(row.user_id) for row in erasures if row.finished_at is not None]
        emails = set(User.objects.values_list("email", flat=True))

    assert "1 erasures were requested again" in output
    assert "0 erasures were requested again" in second_output
    assert ended_at is not None
    assert erased_user_ids == [alice.user_id, ada.user_id]
    assert ada.email not in emails
    assert gus.email in emails


def test_an_erased_user_who_is_the_only_owner_in_the_backup_is_erased_again(
    services: Services,
    backup: tuple[Path, Path],
    acme: ConsentingTenant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    company = acme.company
    olga, ada = company.people[Role.OWNER], company.developer
    back_up(backup)
    with tenant_scope(company.tenant_id):
        Membership.objects.filter(user_id=ada.user_id).update(role=Role.OWNER)
    erasure_request = ErasureRequest(olga.user_id, "a letter")
    request_user_erasure(
        actor=company.platform, erasure_request=erasure_request, now=timezone.now()
    )
    run_due_erasures(now=timezone.now())

    with empty_database(services, monkeypatch):
        restore(backup)
        run_due_erasures(now=timezone.now())
        emails = set(User.objects.values_list("email", flat=True))

    assert olga.email not in emails


def test_a_tenant_erased_after_the_backup_is_erased_again(
    services: Services,
    backup: tuple[Path, Path],
    acme: ConsentingTenant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    company = acme.company
    new_hold = NewHold(name="m", reason="r")
    hold_id = place_hold(actor=company.platform, new=new_hold, now=timezone.now())
    back_up(backup)
    # The restore brings the hold back. It must not prevent that the tenant is erased again.
    release_hold(actor=company.platform, hold_id=hold_id, reason="x", now=timezone.now())
    close_tenant(company)
    request_tenant_erasure(actor=company.platform, reason="contract, 12", now=timezone.now())
    run_due_erasures(now=timezone.now())

    with empty_database(services, monkeypatch):
        restore(backup)
        status = Tenant.objects.get(id=company.tenant_id).status
        run_due_erasures(now=timezone.now())
        with tenant_scope(company.tenant_id):
            finished_at = Erasure.objects.get(user_id=None).finished_at
        emails = set(User.objects.values_list("email", flat=True))

    assert status == TenantStatus.CLOSED
    assert finished_at is not None
    assert company.developer.email not in emails


def test_a_tombstone_of_an_erasure_that_could_not_be_stored_is_stored_later(
    acme: ConsentingTenant, tombstone_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = storages[tombstones.STORAGE]
    with monkeypatch.context() as context:
        context.setattr(type(storage), "save", _raise_unreachable)
        request_erasure(acme.company, acme.company.developer)
    run_due_erasures(now=timezone.now())
    tombstones_before = erasure_tombstones.list_newest_tombstones(acme.company.tenant_id)

    erasure_tombstones.write_missing_erasure_tombstones(now=timezone.now())

    assert tombstones_before == []
    (tombstone,) = erasure_tombstones.list_newest_tombstones(acme.company.tenant_id)
    assert str(tombstone.user_id) == acme.company.developer.user_id


def _raise_unreachable(*_: object, **__: object) -> str:
    raise OSError("the store is unreachable")
