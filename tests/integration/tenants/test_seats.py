"""The table of seats and reports by user show a person's figures only if the tenant allows it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden
from tenants.base.permissions import Role
from tenants.identity.members.search import MemberFilter
from tenants.identity.seats import Seat, SeatPage, find_seats
from tenants.models import ApiKey, MonthSpend
from tenants.usage.reports.operations import set_min_group_users
from tenants.usage.reports.queries import GroupBy, ReportKind, ReportQuery, read_report
from tenants.usage.rollups.operations import roll_up_tenant
from tests.fixtures.companies import (
    ACME_PEOPLE,
    GLOBEX_PEOPLE,
    Company,
    Person,
    make_company,
    make_key,
)
from tests.integration.tenants.records import NOON, add_completion, add_outcome


@pytest.fixture
def company() -> Company:
    """Make a company whose developer used Caret this month, and whose administrator did not."""
    tenant = make_company("initech", ACME_PEOPLE)
    request_id = add_completion(tenant, editor="neovim")
    add_outcome(tenant, request_id, "shown")
    add_outcome(tenant, request_id, "accepted")
    add_completion(tenant, editor="vscode", at=NOON + timedelta(days=1))
    add_completion(tenant, editor="zed", at=NOON - timedelta(days=30))
    roll_up_tenant(tenant_id=tenant.tenant_id, arrived_until=timezone.now())
    with tenant_scope(tenant.tenant_id):
        MonthSpend.objects.create(
            tenant_id=tenant.tenant_id,
            month=NOON.date().replace(day=1),
            holder=tenant.developer.user_id,
            micros=1_230_000,
        )
    return tenant


def show_single_users(company: Company) -> None:
    actor = company.administrator.actor
    set_min_group_users(actor=actor, min_users=1, reason="test", now=timezone.now())


def find_seats_page(company: Company, person: Person | None = None, **fields: object) -> SeatPage:
    """Return the seats that the person sees. None: the administrator."""
    return find_seats(
        actor=(person or company.administrator).actor,
        member_filter=MemberFilter(**fields),  # type: ignore[arg-type]  # fields of the filter
        limit=25,
        cursor=None,
        now=NOON + timedelta(days=2),
    )


def find_seat(seat_page: SeatPage, person: Person) -> Seat:
    return next(row for row in seat_page.page.rows if row.member.user_id == person.user_id)


def test_single_persons_figures_are_hidden_by_default(company: Company) -> None:
    seat_page = find_seats_page(company)

    assert seat_page.min_users == 5
    assert len(seat_page.page.rows) == 5
    assert {row.figures for row in seat_page.page.rows} == {None}


def test_figures_are_of_this_month_if_the_tenant_shows_single_users(company: Company) -> None:
    show_single_users(company)

    seat_page = find_seats_page(company)
    figures = find_seat(seat_page, company.developer).figures
    idle = find_seat(seat_page, company.administrator).figures

    assert figures is not None
    assert (figures.requests, figures.acceptance, figures.editor) == (2, 1.0, "vscode")
    assert figures.cost_micros == 1_230_000
    assert idle is not None
    assert (idle.requests, idle.acceptance, idle.editor, idle.cost_micros) == (0, None, "", 0)


def test_billing_and_developers_cannot_read_seats(company: Company) -> None:
    for role in (Role.BILLING, Role.DEVELOPER):
        with pytest.raises(Forbidden):
            find_seats_page(company, company.people[role])


def test_idle_seats_are_found_by_the_use_of_their_keys(company: Company) -> None:
    key = make_key(company, company.developer).key
    with tenant_scope(company.tenant_id):
        ApiKey.objects.filter(lookup_id=key.lookup_id).update(last_used_at=NOON)

    idle = find_seats_page(company, idle_since=NOON - timedelta(days=1)).page.rows
    all_seats = find_seats_page(company, idle_since=NOON + timedelta(days=1)).page.rows

    assert company.developer.user_id not in {row.member.user_id for row in idle}
    assert (len(idle), len(all_seats)) == (4, 5)
    assert find_seat(find_seats_page(company), company.developer).last_active_at == NOON


def test_seats_of_another_tenant_are_not_shown(company: Company) -> None:
    globex = make_company("globex", GLOBEX_PEOPLE)

    seat_page = find_seats_page(globex)

    assert {row.member.user_id for row in seat_page.page.rows} == {
        person.user_id for person in globex.people.values()
    }


def test_a_report_by_user_is_only_for_tenants_that_show_single_users(company: Company) -> None:
    month = NOON.date().replace(day=1)
    query = ReportQuery(month, month + timedelta(days=30), GroupBy.USER)  # all of November
    actor = company.administrator.actor

    hidden = read_report(actor=actor, kind=ReportKind.USAGE, query=query)
    show_single_users(company)
    report = read_report(actor=actor, kind=ReportKind.USAGE, query=query)

    assert hidden.rows == []
    assert [(row.label, row.counts and row.counts.requests) for row in report.rows] == [
        (company.developer.email, 2)
    ]
