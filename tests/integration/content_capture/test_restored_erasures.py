"""Back up, erase a user, lose all data, restore: the erased user's data is erased again."""

from pathlib import Path

import pytest
from django.core.files.storage import storages
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import tombstones as store_of_notes
from tenants.base.permissions import Role
from tenants.compliance.data_subjects import erasure_tombstones as erasures_noted
from tenants.compliance.data_subjects.erasure_worker import run_due_erasures
from tenants.compliance.data_subjects.operations import (
    ErasureRequest,
    demand_erasure,
    request_tenant_erasure,
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
from tests.integration.content_capture.backup_restore import back_up, destroy_again, lost, restore
from tests.integration.content_capture.consenting_tenant import Willing
from tests.stack.services import Services


def demand(company: Company, person: Person) -> None:
    asked = ErasureRequest(person.user_id, "her letter")
    demand_erasure(actor=company.people[Role.OWNER].actor, demand=asked, now=timezone.now())


def close(company: Company) -> None:
    for status in (TenantStatus.SUSPENDED, TenantStatus.CLOSING, TenantStatus.CLOSED):
        set_status(actor=company.platform, status=status, reason="end", now=timezone.now())


def test_who_was_erased_since_is_erased_again_and_the_neighbour_is_not(
    services: Services,
    backup: tuple[Path, Path],
    acme: Willing,
    globex: Willing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada, alice, gus = (
        acme.company.developer,
        acme.company.administrator,
        globex.company.developer,
    )
    demand(acme.company, alice)
    run_due_erasures(now=timezone.now())
    back_up(backup)
    demand(acme.company, ada)
    run_due_erasures(now=timezone.now())

    with lost(services, monkeypatch):
        told = restore(backup)
        with tenant_scope(acme.company.tenant_id):
            ended = Membership.objects.get(user_id=ada.user_id).ended_at
        again = destroy_again()
        run_due_erasures(now=timezone.now())
        with tenant_scope(acme.company.tenant_id):
            erasures = Erasure.objects.order_by("id")
            erased = [str(row.user_id) for row in erasures if row.finished_at is not None]
        emails = dict(User.objects.values_list("id", "email"))

    assert "1 erasures were requested again" in told
    assert "0 erasures were requested again" in again
    assert ended is not None
    assert erased == [alice.user_id, ada.user_id]
    assert ada.email not in emails.values()
    assert gus.email in emails.values()


def test_who_was_the_last_owner_in_the_backup_goes_as_well(
    services: Services,
    backup: tuple[Path, Path],
    acme: Willing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    company = acme.company
    olga, ada = company.people[Role.OWNER], company.developer
    back_up(backup)
    with tenant_scope(company.tenant_id):
        Membership.objects.filter(user_id=ada.user_id).update(role=Role.OWNER)
    asked = ErasureRequest(olga.user_id, "her letter")
    demand_erasure(actor=company.platform, demand=asked, now=timezone.now())
    run_due_erasures(now=timezone.now())

    with lost(services, monkeypatch):
        restore(backup)
        run_due_erasures(now=timezone.now())
        emails = set(User.objects.values_list("email", flat=True))

    assert olga.email not in emails


def test_a_tenant_that_was_shredded_since_is_shredded_again(
    services: Services,
    backup: tuple[Path, Path],
    acme: Willing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    company = acme.company
    hold = place_hold(actor=company.platform, new=NewHold("m", "r"), now=timezone.now())
    back_up(backup)
    release_hold(actor=company.platform, hold_id=hold, reason="x", now=timezone.now())
    close(company)
    request_tenant_erasure(actor=company.platform, reason="contract, 12", now=timezone.now())
    run_due_erasures(now=timezone.now())

    with lost(services, monkeypatch):
        restore(backup)
        status = Tenant.objects.get(id=company.tenant_id).status
        run_due_erasures(now=timezone.now())
        with tenant_scope(company.tenant_id):
            finished_at = Erasure.objects.get(user_id=None).finished_at
        emails = set(User.objects.values_list("email", flat=True))

    assert status == TenantStatus.CLOSED
    assert finished_at is not None
    assert company.developer.email not in emails


def test_an_erasure_that_was_not_noted_at_once_is_noted_later(
    acme: Willing, noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = storages[store_of_notes.STORAGE]
    with monkeypatch.context() as away:
        away.setattr(type(storage), "save", _away)
        demand(acme.company, acme.company.developer)
    run_due_erasures(now=timezone.now())

    erasures_noted.note_missed(now=timezone.now())

    (found,) = erasures_noted.newest_noted(acme.company.tenant_id)
    assert str(found.user_id) == acme.company.developer.user_id


def _away(*_: object, **__: object) -> str:
    raise OSError("the store is unreachable")
