"""Owners transfer the ownership, operators appoint owners, and the last owner cannot leave."""

from collections.abc import Callable
from threading import Barrier, Thread

import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, NotFound
from tenants.base.permissions import Role
from tenants.identity.member_lifecycle import change_role, remove_member
from tenants.identity.ownership import appoint_owner, transfer_ownership
from tenants.models import AuditEntry
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.authorization.directory import list_members
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, Person, make_company
from tests.fixtures.users import make_colleague


@pytest.fixture(autouse=True)
def _mails_in_memory(settings: LazySettings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []


@pytest.fixture
def company() -> Company:
    return make_company("hooli", ACME_PEOPLE)


@pytest.fixture
def olga(company: Company) -> Person:
    return company.people[Role.OWNER]


def list_owner_emails(company: Company) -> set[str]:
    rows = list_members(tenant_id=company.tenant_id)
    return {row.email for row in rows if row.role is Role.OWNER}


def transfer(sender: Person, recipient: Person) -> None:
    transfer_ownership(
        actor=sender.actor, user_id=recipient.user_id, reason="I am leaving", now=timezone.now()
    )


def test_the_new_owner_replaces_the_old_one_and_both_are_mailed(
    company: Company, olga: Person
) -> None:
    transfer(olga, company.administrator)

    roles = {row.email: row.role for row in list_members(tenant_id=company.tenant_id)}
    assert roles[company.administrator.email] is Role.OWNER
    assert roles[olga.email] is Role.ADMINISTRATOR
    (message,) = mail.outbox
    assert set(message.to) == {olga.email, company.administrator.email}
    assert "I am leaving" in message.body
    with tenant_scope(company.tenant_id):
        entries = AuditEntry.objects.filter(action="member.role_changed").order_by("sequence")
        assert [(entry.target, entry.reason) for entry in entries] == [
            (f"user:{company.administrator.user_id}", "I am leaving"),
            (f"user:{olga.user_id}", "I am leaving"),
        ]


def test_only_an_owner_can_transfer_the_ownership_and_only_to_another_member(
    company: Company, olga: Person
) -> None:
    with pytest.raises(Forbidden):
        transfer(company.administrator, company.developer)
    with pytest.raises(Conflict, match="another member"):
        transfer(olga, olga)
    with pytest.raises(NotFound):
        transfer(olga, make_company("globex", GLOBEX_PEOPLE).developer)

    assert list_owner_emails(company) == {olga.email}


def test_the_second_of_two_transfers_is_refused(company: Company, olga: Person) -> None:
    """The user was still an owner when the second request began, so its actor has that role."""
    transfer(olga, company.administrator)

    with pytest.raises(Conflict, match="no longer an owner"):
        transfer(olga, company.developer)

    assert list_owner_emails(company) == {company.administrator.email}


def test_an_operator_makes_a_member_an_owner(company: Company, olga: Person) -> None:
    email = company.administrator.email.upper()

    call_command("tenant", "appoint-owner", company.slug, email, "--reason", "test")

    assert list_owner_emails(company) == {olga.email, company.administrator.email}
    assert set(mail.outbox[0].to) == list_owner_emails(company)


def test_only_operators_appoint_owners_and_only_members_are_appointed(company: Company) -> None:
    outsider = make_company("globex", GLOBEX_PEOPLE).developer

    for email in (outsider.email, "nobody", "a\0b"):
        with pytest.raises(CommandError):
            call_command("tenant", "appoint-owner", company.slug, email, "--reason", "test")
    with pytest.raises(Forbidden):
        appoint_owner(
            actor=company.people[Role.OWNER].actor,
            email=company.developer.email,
            reason="",
            now=timezone.now(),
        )


def leave(person: Person) -> None:
    remove_member(actor=person.actor, user_id=person.user_id, reason="", now=timezone.now())


def step_down(person: Person) -> None:
    change_role(
        actor=person.actor,
        user_id=person.user_id,
        role=Role.DEVELOPER,
        reason="",
        now=timezone.now(),
    )


@pytest.mark.parametrize("leave_or_step_down", [leave, step_down])
def test_one_of_two_owners_who_leave_at_the_same_time_stays(
    company: Company, olga: Person, leave_or_step_down: Callable[[Person], None]
) -> None:
    second_owner = make_colleague(company, Role.OWNER)
    barrier = Barrier(3)  # two threads and this test
    refusals: list[str] = []

    def run(person: Person) -> None:
        barrier.wait()
        try:
            leave_or_step_down(person)
        except Conflict as error:
            refusals.append(error.message)
        finally:
            connection.close()

    threads = [Thread(target=run, args=(person,)) for person in (olga, second_owner)]
    for thread in threads:
        thread.start()
    with tenant_scope(company.tenant_id):
        # Both transactions wait for this lock, so that neither has committed when the other begins.
        mark_snapshot_stale(tenant_id=company.tenant_id)
        barrier.wait()
        for thread in threads:
            thread.join(0.2)  # seconds in which both threads reach the lock
    for thread in threads:
        thread.join()

    assert len(refusals) == 1
    assert "last owner" in refusals[0]
    assert len(list_owner_emails(company)) == 1
