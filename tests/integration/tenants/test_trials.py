"""A tenant's trial ends after its last day, and its owners are reminded of the end by email."""

import secrets
from datetime import UTC, date, datetime, timedelta

import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.management import CommandError, call_command
from django.utils import timezone

from caret.contracts.snapshot import SNAPSHOTS, TenantStatus, decode_snapshot
from caret.foundation.clock import from_unix_ms
from tenants.base import redis_connection
from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.identity.members.tenant_status import set_status
from tenants.identity.trials import send_due_reminders, set_trial_end
from tenants.models import Tenant
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company

TODAY = timezone.now().date()
LAST_DAY = TODAY + timedelta(days=20)


@pytest.fixture(autouse=True)
def _mails_in_memory(settings: LazySettings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []


@pytest.fixture
def company() -> Company:
    tenant = make_company("raviga", ACME_PEOPLE)
    set_last_day(tenant, LAST_DAY)
    return tenant


def set_last_day(company: Company, ends_on: date | None) -> None:
    set_trial_end(actor=company.platform, ends_on=ends_on, reason="", now=timezone.now())


def run_reminder_worker(company: Company, *, days_before: int) -> list[str]:
    """Run the worker, and return the subjects of the owner's reminders.

    The worker runs `days_before` days before the last day; a negative number means days after it.
    """
    mail.outbox = []
    at = datetime.combine(LAST_DAY - timedelta(days=days_before), datetime.min.time(), UTC)
    send_due_reminders(now=at)
    olga = company.people[Role.OWNER].email
    return [str(message.subject) for message in mail.outbox if message.to == [olga]]


def read_published_end(company: Company) -> datetime | None:
    data = redis_connection.connect_to_redis().hget(SNAPSHOTS, company.tenant_id)
    assert isinstance(data, bytes)
    ends_at_ms = decode_snapshot(data).trial_ends_at_ms
    return None if ends_at_ms is None else from_unix_ms(ends_at_ms)


def test_gateways_learn_when_the_last_day_is_over(company: Company) -> None:
    next_day = LAST_DAY + timedelta(days=1)

    assert read_published_end(company) == datetime(
        next_day.year, next_day.month, next_day.day, tzinfo=UTC
    )
    set_last_day(company, None)
    assert read_published_end(company) is None


def test_owners_are_reminded_a_week_before_a_day_before_and_after_the_last_day(
    company: Company,
) -> None:
    subjects = [run_reminder_worker(company, days_before=days) for days in (8, 7, 6, 1, 0, -1, -2)]

    ends = f"The trial of Raviga ends on {LAST_DAY}"
    ended = f"The trial of Raviga ended on {LAST_DAY}"
    assert subjects == [[], [ends], [], [ends], [], [ended], []]


def test_a_reminder_missed_the_day_before_is_sent_on_the_last_day(company: Company) -> None:
    assert len(run_reminder_worker(company, days_before=0)) == 1
    assert run_reminder_worker(company, days_before=0) == []


def test_owners_are_reminded_again_of_a_new_trial(company: Company) -> None:
    assert len(run_reminder_worker(company, days_before=1)) == 1

    set_last_day(company, LAST_DAY)  # also if the day stays the same, a new trial begins

    assert len(run_reminder_worker(company, days_before=1)) == 1


def test_a_tenant_that_has_no_trial_any_more_is_not_reminded(company: Company) -> None:
    set_last_day(company, None)

    assert run_reminder_worker(company, days_before=-1) == []


def test_a_suspended_tenant_is_not_reminded(company: Company) -> None:
    set_status(actor=company.platform, status=TenantStatus.SUSPENDED, reason="", now=timezone.now())

    assert run_reminder_worker(company, days_before=1) == []


@pytest.mark.parametrize("day", [TODAY, TODAY - timedelta(days=1), date(9999, 12, 31)])
def test_a_trial_cannot_end_today_or_too_far_ahead(company: Company, day: date) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        set_last_day(company, day)

    assert exc_info.value.field == "trial_ends_on"
    assert Tenant.objects.get(id=company.tenant_id).trial_ends_on == LAST_DAY


def test_an_owner_cannot_lengthen_the_trial(company: Company) -> None:
    with pytest.raises(Forbidden):
        set_trial_end(
            actor=company.people[Role.OWNER].actor, ends_on=None, reason="", now=timezone.now()
        )


def test_the_command_creates_a_tenant_with_a_trial_and_changes_it() -> None:
    slug = f"raviga-{secrets.token_hex(4)}"
    arguments = ("--name", "Raviga", "--owner", f"olga@{slug}.example")

    call_command("tenant", "create", slug, *arguments, "--trial-ends", LAST_DAY.isoformat())
    assert Tenant.objects.get(slug=slug).trial_ends_on == LAST_DAY
    call_command("tenant", "trial", slug, "--reason", "test")  # without a day: no trial
    assert Tenant.objects.get(slug=slug).trial_ends_on is None
    with pytest.raises(CommandError):
        call_command("tenant", "trial", slug, "tomorrow", "--reason", "test")
    assert Tenant.objects.get(slug=slug).trial_ends_on is None
