"""Times that Python cannot represent in UTC, and days outside the permitted years, are rejected.

If such a time is stored already, it affects only its tenant. Postgres can store these times.
"""

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone

import pytest
from django.core.management import CommandError, call_command
from django.utils.timezone import now

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.billing.plans.operations import NewPrice, add_price, subscribe_tenant
from tenants.compliance.exports.jobs.queries import find_export, list_exports
from tenants.compliance.exports.jobs.run import run_due_jobs
from tenants.compliance.exports.jobs.state_machine import JobState
from tenants.models import DirtyHour, ExportJob
from tests.fakes.exports import OCTOBER, start_export
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company

# In UTC, these times are in the years 1 BC and 10000, which Python cannot represent.
_UNREPRESENTABLE_START = "0001-01-01T00:00:00+14:00"
_UNREPRESENTABLE_END = "9999-12-31T23:59:59-12:00"


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


@pytest.mark.parametrize(
    ("bound", "text", "error_field"),
    [("start", _UNREPRESENTABLE_START, "since"), ("end", _UNREPRESENTABLE_END, "until")],
)
def test_an_export_with_an_unrepresentable_time_is_refused(
    company: Company, bound: str, text: str, error_field: str
) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        start_export(company, period=replace(OCTOBER, **{bound: datetime.fromisoformat(text)}))

    assert exc_info.value.field == error_field
    assert list_exports(actor=company.administrator.actor, limit=10, cursor=None).rows == []


def test_an_unreadable_export_does_not_delay_another_tenant(company: Company, cast: Cast) -> None:
    own_export, foreign_export = start_export(company), start_export(cast.globex)
    # In UTC, this time is in the year 1 BC, which Python cannot represent.
    unrepresentable_time = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    with tenant_scope(company.tenant_id):
        rows = ExportJob.objects.filter(tenant_id=company.tenant_id, id=own_export)
        rows.update(since=unrepresentable_time)
    try:
        run_due_jobs(clock=now, max_run_s=600)

        assert (
            find_export(actor=cast.globex.platform, export_id=foreign_export).state
            is JobState.FINISHED
        )
    finally:
        with tenant_scope(company.tenant_id):
            rows.update(since=OCTOBER.start, state=JobState.CANCELLED)


@pytest.mark.parametrize(
    "arguments",
    [("--from=0001-01-01", "--to=0001-01-02"), ("--from=9999-12-30", "--to=9999-12-31")],
)
def test_rollups_of_days_outside_the_permitted_years_are_refused(
    company: Company, arguments: tuple[str, str]
) -> None:
    with pytest.raises(CommandError, match="years 1970 to 2199"):
        call_command("rebuild_rollups", company.slug, *arguments)

    with tenant_scope(company.tenant_id):
        assert not DirtyHour.objects.filter(tenant_id=company.tenant_id).exists()


@pytest.mark.parametrize("day", [date.min, date.max])
def test_plans_and_prices_cannot_start_outside_the_permitted_years(
    company: Company, day: date
) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        subscribe_tenant(actor=company.platform, plan="team", starts_on=day, now=now())
    assert exc_info.value.field == "starts_on"

    new = NewPrice(day, seat_month_micros=0, tiers={})
    with pytest.raises(InvalidValue) as exc_info:
        add_price(plan="team", new=new, now=now())
    assert exc_info.value.field == "effective_on"
