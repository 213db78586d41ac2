"""Reports of usage and quality are shown to permitted roles, without numbers of small groups.

By default, a small group has fewer than five users. The total of a usage report is always shown,
also for a small tenant, because it is on the bill.
"""

import uuid
from datetime import date, timedelta
from typing import Any

import pytest
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.models import AuditEntry, Membership, Team, TeamMembership, User
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.operations import MAX_MIN_USERS, set_min_group_users
from tenants.usage.reports.queries import GroupBy, Report, ReportKind, ReportQuery, read_report
from tenants.usage.reports.suppression.filtered_suppression import NO_TEAM
from tenants.usage.reports.suppression.small_groups import Suppression
from tenants.usage.rollups.operations import roll_up_tenant
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.integration.tenants.records import NOON, add_completion, add_outcome

MONTH = (date(2026, 11, 1), date(2026, 12, 1))


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def make_user_ids(count: int) -> list[uuid.UUID]:
    return [uuid.uuid4() for _ in range(count)]


def add_completions(company: Company, users: Any, **fields: Any) -> None:
    for user_id in users:
        add_completion(company, user_id=user_id, **fields)


def roll_up(company: Company) -> None:
    roll_up_tenant(tenant_id=company.tenant_id, arrived_until=timezone.now())


def run_report(
    company: Company,
    group_by: GroupBy | None = None,
    *,
    kind: ReportKind = ReportKind.USAGE,
    actor: Actor | None = None,
    days: tuple[date, date] = MONTH,
) -> Report:
    actor = actor or company.administrator.actor
    return read_report(actor=actor, kind=kind, query=ReportQuery(*days, group_by))


def requests_by_group(report: Report) -> dict[str, int | None]:
    return {row.key: row.counts.requests if row.counts else None for row in report.rows}


def test_a_tenant_without_usage_has_an_empty_report(company: Company) -> None:
    report = run_report(company, GroupBy.DAY)

    assert (report.rows, report.complete_until) == ([], None)
    assert report.total.counts is not None
    assert (report.total.users, report.total.counts.requests) == (0, 0)


def test_groups_are_counted_with_their_users(company: Company) -> None:
    people = make_user_ids(6)
    add_completions(company, people)
    add_completions(company, people, language="go", at=NOON + timedelta(days=1))
    roll_up(company)

    report = run_report(company, GroupBy.LANGUAGE)

    assert [(row.key, row.users) for row in report.rows] == [("go", 6), ("python", 6)]
    assert report.total.users == 6
    assert report.total.counts is not None
    assert report.total.counts.requests == 12
    assert set(requests_by_group(run_report(company, GroupBy.DAY))) == {"2026-11-20", "2026-11-21"}


def test_a_period_includes_its_first_day_but_not_its_end_day(company: Company) -> None:
    add_completions(company, make_user_ids(5))
    roll_up(company)

    starts_that_day = run_report(company, days=(date(2026, 11, 20), date(2026, 11, 21)))
    ends_that_day = run_report(company, days=(date(2026, 11, 19), date(2026, 11, 20)))

    assert (starts_that_day.total.users, ends_that_day.total.users) == (5, 0)


def test_small_groups_are_listed_without_numbers(company: Company) -> None:
    people = make_user_ids(12)
    add_completions(company, people)
    add_completions(company, people[:2], language="go")
    add_completions(company, people[:7], language="rust")
    roll_up(company)

    report = run_report(company, GroupBy.LANGUAGE)

    # Rust has enough users, but the total minus python and rust would reveal go.
    assert requests_by_group(report) == {"go": None, "python": 12, "rust": None}
    reasons = {row.key: row.suppression for row in report.rows}
    assert reasons["go"] is Suppression.TOO_FEW_USERS
    assert reasons["rust"] is Suppression.COMPLEMENTARY
    assert all(row.users is None for row in report.rows if row.suppression)


def test_usage_of_service_keys_is_not_suppressed(company: Company) -> None:
    add_completions(company, [None], language="go")  # None: a service key, which has no user
    add_completions(company, make_user_ids(5))
    roll_up(company)

    report = run_report(company, GroupBy.LANGUAGE)

    assert [(row.key, row.users) for row in report.rows] == [("go", 0), ("python", 5)]


def test_the_total_of_few_users_is_suppressed_for_quality_but_not_for_usage(
    company: Company,
) -> None:
    add_completions(company, make_user_ids(4))
    roll_up(company)

    assert run_report(company, kind=ReportKind.USAGE).total.counts is not None
    assert (
        run_report(company, kind=ReportKind.QUALITY).total.suppression is Suppression.TOO_FEW_USERS
    )


def test_a_tenant_configures_the_minimum_group_size(company: Company) -> None:
    add_completions(company, make_user_ids(2))
    roll_up(company)
    administrator = company.administrator.actor

    set_min_group_users(actor=administrator, min_users=2, reason="A small company.", now=NOON)

    assert run_report(company, kind=ReportKind.QUALITY).total.users == 2
    assert run_report(company).min_users == 2
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="reports.min_group_size_changed")
    assert (entry.before, entry.after) == ({"min_users": 5}, {"min_users": 2})


@pytest.mark.parametrize("min_users", [0, -1, MAX_MIN_USERS + 1])
def test_an_invalid_minimum_group_size_is_refused(company: Company, min_users: int) -> None:
    with pytest.raises(InvalidValue):
        set_min_group_users(
            actor=company.administrator.actor, min_users=min_users, reason="x", now=NOON
        )


def test_a_developer_sees_their_own_usage_without_suppression(company: Company) -> None:
    add_completions(company, make_user_ids(9))
    add_completions(company, [company.developer.user_id], language="go")
    roll_up(company)

    for kind in ReportKind:
        report = run_report(company, GroupBy.LANGUAGE, kind=kind, actor=company.developer.actor)

        assert requests_by_group(report) == {"go": 1}
        assert report.total.users == 1


def test_the_billing_role_sees_usage_but_not_quality(company: Company) -> None:
    billing_actor = company.people[Role.BILLING].actor
    add_completions(company, make_user_ids(5))
    roll_up(company)

    assert run_report(company, actor=billing_actor).total.users == 5
    with pytest.raises(Forbidden):
        run_report(company, kind=ReportKind.QUALITY, actor=billing_actor)


def test_another_tenant_sees_no_usage(company: Company) -> None:
    other_company = make_company("hooli", GLOBEX_PEOPLE)
    add_completions(company, make_user_ids(5))
    roll_up(company)

    for group_by in GroupBy:
        report = run_report(other_company, group_by)

        assert (report.rows, report.total.users) == ([], 0)


def test_the_report_counts_outcomes(company: Company) -> None:
    for user_id in make_user_ids(5):
        add_outcome(company, add_completion(company, user_id=user_id), "accepted")
    roll_up(company)

    report = run_report(company, kind=ReportKind.QUALITY)

    assert report.total.counts is not None
    assert (report.total.counts.shown, report.total.counts.accepted) == (5, 5)


@pytest.mark.parametrize(
    "days",
    [
        (date(2026, 11, 2), date(2026, 11, 2)),
        (date(2026, 11, 2), date(2026, 11, 1)),
        (date(2025, 11, 1), date(2026, 11, 3)),
    ],
    ids=["empty", "reversed", "longer than a year"],
)
def test_an_invalid_period_is_refused(company: Company, days: tuple[date, date]) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        run_report(company, days=days)

    assert exc_info.value.field == "end"


def test_a_member_of_two_teams_counts_in_both(company: Company) -> None:
    people = [make_member(company) for _ in range(20)]
    red, blue = make_team(company, people[:10]), make_team(company, people[5:15])
    add_completions(company, people)
    roll_up(company)

    report = run_report(company, GroupBy.TEAM)

    assert requests_by_group(report) == {red: 10, blue: 10, NO_TEAM: 5}
    assert report.total.users == 20


def test_a_user_in_two_teams_cannot_be_derived_from_the_total(company: Company) -> None:
    people = [make_member(company) for _ in range(15)]
    make_team(company, people[:6])
    make_team(company, people[5:10])
    add_completions(company, people)
    roll_up(company)

    requests = requests_by_group(run_report(company, GroupBy.TEAM))

    # 15 users, in teams of 6 and 5 and 5 without a team, which makes 16: all three numbers
    # together would reveal the requests of the user in both teams.
    assert None in requests.values()


def test_a_team_of_nearly_all_users_is_suppressed(company: Company) -> None:
    """The total minus a team would reveal the one or two users outside of that team."""
    people = [make_member(company) for _ in range(8)]
    nearly_all, other_team = make_team(company, people[:7]), make_team(company, people[2:8])
    add_completions(company, people)
    roll_up(company)

    report = run_report(company, GroupBy.TEAM)

    assert requests_by_group(report) == {nearly_all: None, other_team: None}


def make_member(company: Company) -> uuid.UUID:
    user = User.objects.create(email=f"{uuid.uuid4()}@x.example", name="", created_at=NOON)
    with tenant_scope(company.tenant_id):
        Membership.objects.create(
            tenant_id=company.tenant_id, user=user, role=Role.DEVELOPER, created_at=NOON
        )
    return uuid.UUID(str(user.id))


def make_team(company: Company, members: list[uuid.UUID]) -> str:
    with tenant_scope(company.tenant_id):
        team = Team.objects.create(
            tenant_id=company.tenant_id, name=str(uuid.uuid4()), created_at=NOON
        )
        for user_id in members:
            TeamMembership.objects.create(
                tenant_id=company.tenant_id, team_id=team.id, user_id=user_id, created_at=NOON
            )
    return str(team.id)
