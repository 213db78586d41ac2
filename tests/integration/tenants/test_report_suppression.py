"""Reports never show two figures whose difference would reveal one user's usage.

By default, a report hides the figures of groups of fewer than five users.
"""

import uuid
from datetime import date, timedelta
from typing import Any

import pytest
from django.utils import timezone

from caret.contracts.policy import Mode
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.models import Membership, Team, TeamMembership, User
from tenants.usage.reports.experiments import read_experiments
from tenants.usage.reports.filters import ReportFilter
from tenants.usage.reports.overview import Overview, read_overview
from tenants.usage.reports.queries import GroupBy, Report, ReportKind, ReportQuery, read_report
from tenants.usage.rollups.operations import roll_up_tenant
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.tenants.records import NOON, add_completion, add_outcome

DAY = (date(2026, 11, 20), date(2026, 11, 21))  # the second day is not part of the period
YESTERDAY = NOON - timedelta(days=1)


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def make_user_ids(count: int) -> list[uuid.UUID]:
    return [uuid.uuid4() for _ in range(count)]


def add_accepted_completions(company: Company, users: list[uuid.UUID], **fields: Any) -> None:
    """Add one accepted completion for each user.

    By default the editor is zed and the language python.
    """
    for user_id in users:
        add_outcome(company, add_completion(company, user_id=user_id, **fields), "accepted")


def roll_up(company: Company) -> None:
    roll_up_tenant(tenant_id=company.tenant_id, arrived_until=timezone.now())


def make_member(company: Company) -> uuid.UUID:
    user = User.objects.create(email=f"{uuid.uuid4()}@x.example", name="", created_at=NOON)
    with tenant_scope(company.tenant_id):
        Membership.objects.create(
            tenant_id=company.tenant_id, user=user, role=Role.DEVELOPER, created_at=NOON
        )
    return uuid.UUID(str(user.id))


def make_team(company: Company, members: list[uuid.UUID]) -> uuid.UUID:
    with tenant_scope(company.tenant_id):
        team = Team.objects.create(
            tenant_id=company.tenant_id, name=str(uuid.uuid4()), created_at=NOON
        )
        for user_id in members:
            TeamMembership.objects.create(
                tenant_id=company.tenant_id, team_id=team.id, user_id=user_id, created_at=NOON
            )
    return team.id


def run_report(company: Company, group_by: GroupBy | None = None, **filters: Any) -> Report:
    query = ReportQuery(*DAY, group_by, ReportFilter(**filters))
    return read_report(actor=company.administrator.actor, kind=ReportKind.QUALITY, query=query)


def is_disclosed(company: Company, **filters: Any) -> bool:
    return run_report(company, **filters).total.counts is not None


def disclosed_groups(report: Report) -> set[str]:
    return {row.key for row in report.rows if row.counts is not None}


def run_overview(company: Company, *, days: tuple[date, date] = DAY, **filters: Any) -> Overview:
    query = ReportQuery(*days, filter=ReportFilter(**filters))
    return read_overview(actor=company.administrator.actor, query=query)


def test_two_teams_that_differ_by_one_user_are_not_both_disclosed(company: Company) -> None:
    """The figures of blue minus those of red would reveal blue's seventh user.

    Red is hidden, because it consists of all users of blue except a few.
    """
    people = [make_member(company) for _ in range(20)]
    red, blue = make_team(company, people[:6]), make_team(company, people[:7])
    add_accepted_completions(company, people)
    add_accepted_completions(company, people, editor="vim")
    roll_up(company)

    assert not is_disclosed(company, team_id=red)
    assert not (
        is_disclosed(company, team_id=red, editor="zed")
        and is_disclosed(company, team_id=blue, editor="zed")
    )


def test_a_team_filtered_by_editor_does_not_reveal_one_user(company: Company) -> None:
    """The figures of red minus those of red in zed would reveal red's only user of vim."""
    people = [make_member(company) for _ in range(20)]
    red = make_team(company, people[:10])
    add_accepted_completions(company, people)
    add_accepted_completions(company, [people[0], *people[10:]], editor="vim")
    roll_up(company)

    assert is_disclosed(company, team_id=red)
    assert is_disclosed(company, editor="zed")
    assert not is_disclosed(company, team_id=red, editor="zed")


def test_a_language_hidden_in_a_report_is_hidden_as_a_filter(company: Company) -> None:
    """All minus python minus rust would reveal go, which two users write."""
    people = make_user_ids(12)
    add_accepted_completions(company, people)
    add_accepted_completions(company, people[:7], language="rust")
    add_accepted_completions(company, people[:2], language="go")
    roll_up(company)

    assert disclosed_groups(run_report(company, GroupBy.LANGUAGE)) == {"python"}
    assert not is_disclosed(company, language="rust")
    assert is_disclosed(company, language="python")


def test_a_filtered_report_hides_groups_that_reveal_others(company: Company) -> None:
    """The figures of vim minus those of python in vim would reveal one user, who writes go.

    So python in vim is hidden. Python minus python in zed would reveal it, so zed is hidden, too.
    """
    people = make_user_ids(12)
    add_accepted_completions(company, people)
    add_accepted_completions(company, people, editor="vim")
    add_accepted_completions(company, people, language="go")
    add_accepted_completions(company, people[:1], language="go", editor="vim")
    roll_up(company)

    assert is_disclosed(company, language="python")
    assert disclosed_groups(run_report(company, GroupBy.EDITOR, language="python")) == set()


def test_a_filtered_report_hides_days_that_reveal_others(company: Company) -> None:
    """The figures of November 18 minus those of python would reveal the only user of go."""
    people = make_user_ids(12)
    for at in (YESTERDAY, NOON):
        add_accepted_completions(company, people, at=at)
        add_accepted_completions(company, people, language="go", at=at)
    two_days_ago = NOON - timedelta(days=2)
    add_accepted_completions(company, people, at=two_days_ago)
    add_accepted_completions(company, people[:1], language="go", at=two_days_ago)
    roll_up(company)

    report_query = ReportQuery(
        date(2026, 11, 18), DAY[1], GroupBy.DAY, ReportFilter(language="python")
    )
    report = read_report(
        actor=company.administrator.actor, kind=ReportKind.USAGE, query=report_query
    )

    assert report.total.counts is not None
    assert "2026-11-18" not in disclosed_groups(report)
    # Total minus both other days would reveal the hidden day, so one of them is hidden as well.
    assert len(disclosed_groups(report)) < 2


def test_a_report_of_one_team_lists_no_other_team(company: Company) -> None:
    people = [make_member(company) for _ in range(20)]
    red, _blue = make_team(company, people[:10]), make_team(company, people[5:])
    add_accepted_completions(company, people)
    roll_up(company)

    assert disclosed_groups(run_report(company, GroupBy.TEAM, team_id=red)) == {str(red)}


def test_the_overview_hides_the_figures_that_reports_hide(company: Company) -> None:
    """See test_a_filtered_report_hides_groups_that_reveal_others, which has the same usage."""
    people = make_user_ids(12)
    add_accepted_completions(company, people)
    add_accepted_completions(company, people, editor="vim")
    add_accepted_completions(company, people, language="go")
    add_accepted_completions(company, people[:1], language="go", editor="vim")
    roll_up(company)

    overview = run_overview(company, language="python")

    assert overview.total.counts is not None
    assert all(row.counts is None for row in overview.group_rows[GroupBy.EDITOR])
    assert run_overview(company, language="go", editor="vim").total.counts is None
    assert set(overview.choices["editor"]) == {"vim", "zed"}


def test_quality_of_the_previous_period_is_hidden_for_one_user(company: Company) -> None:
    people = make_user_ids(6)
    add_accepted_completions(company, people)
    add_accepted_completions(company, people[:1], at=YESTERDAY)
    roll_up(company)

    overview = run_overview(company)

    assert overview.quality is not None
    assert overview.quality.counts is not None
    assert overview.quality_before is not None
    assert overview.quality_before.counts is None
    # Usage without a filter is never hidden: it is on the bill.
    assert overview.before.counts is not None


def test_suppression_of_the_previous_period_depends_on_its_own_users(company: Company) -> None:
    """Yesterday, one user also wrote go. Today, all users wrote only python."""
    people = make_user_ids(6)
    add_accepted_completions(company, people)
    add_accepted_completions(company, people, at=YESTERDAY)
    add_accepted_completions(company, people[:1], at=YESTERDAY, language="go")
    roll_up(company)

    overview = run_overview(company, language="python")

    assert overview.total.counts is not None
    assert overview.before.counts is None
    assert overview.quality_before is not None
    assert overview.quality_before.counts is None


def test_latencies_of_a_mode_with_few_users_are_hidden(company: Company) -> None:
    people = make_user_ids(6)
    add_accepted_completions(company, people, first_token_ms=40.0)
    add_accepted_completions(company, people[:1], first_token_ms=900.0, mode=Mode.CHAT)
    roll_up(company)

    overview = run_overview(company, language="python")

    assert overview.latency is not None
    assert set(overview.latency.current) == {Mode.INLINE}


def test_latencies_of_few_users_in_the_last_week_are_hidden(company: Company) -> None:
    """Latencies of a longer period are those of its last week."""
    people = make_user_ids(6)
    add_accepted_completions(company, people, at=NOON - timedelta(days=12), first_token_ms=40.0)
    add_accepted_completions(company, people[:1], first_token_ms=40.0)
    roll_up(company)

    overview = run_overview(company, days=(date(2026, 11, 1), DAY[1]), language="python")

    assert overview.total.counts is not None
    assert overview.latency is None


def test_variants_do_not_reveal_users_outside_of_the_experiment(company: Company) -> None:
    """All minus the variants would reveal the one user without a variant."""
    add_accepted_completions(company, make_user_ids(6), variant="window/control")
    add_accepted_completions(company, make_user_ids(7), variant="window/wide")
    add_accepted_completions(company, make_user_ids(1))
    roll_up(company)

    (experiment,) = read_experiments(
        actor=company.administrator.actor, query=ReportQuery(*DAY)
    ).experiments

    shown_names = {
        variant.name for variant in experiment.variants if variant.row.counts is not None
    }
    assert shown_names == {"wide"}


def test_a_filtered_experiment_hides_variants_that_reveal_one_user(company: Company) -> None:
    """Control minus control in python would reveal the only user of control who writes go.

    So control is hidden. Python minus wide would reveal control, so wide is hidden, too.
    """
    people = make_user_ids(14)
    add_accepted_completions(company, people[:7], variant="window/control")
    add_accepted_completions(company, people[7:], variant="window/wide")
    add_accepted_completions(company, people[:1], variant="window/control", language="go")
    add_accepted_completions(company, people[7:], variant="window/wide", language="go")
    roll_up(company)

    (experiment,) = read_experiments(
        actor=company.administrator.actor,
        query=ReportQuery(*DAY, filter=ReportFilter(language="python")),
    ).experiments

    assert all(variant.row.counts is None for variant in experiment.variants)


def test_first_token_times_of_an_experiment_obey_the_filter(
    company: Company,
) -> None:
    people = make_user_ids(12)
    for group, variant in ((people[:6], "window/control"), (people[6:], "window/wide")):
        add_accepted_completions(company, group, variant=variant, first_token_ms=40.0)
        add_accepted_completions(
            company, group, variant=variant, first_token_ms=900.0, language="go"
        )
    roll_up(company)

    (experiment,) = read_experiments(
        actor=company.administrator.actor,
        query=ReportQuery(*DAY, filter=ReportFilter(language="python")),
    ).experiments

    measured = [variant.measured.first_token_ms for variant in experiment.variants]
    assert [figure.value for figure in measured if figure is not None] == [40.0, 40.0]


def test_a_developers_own_filtered_report_is_not_suppressed(company: Company) -> None:
    add_accepted_completions(company, [uuid.UUID(company.developer.user_id)])
    add_accepted_completions(company, make_user_ids(3), language="go")
    roll_up(company)

    report_query = ReportQuery(*DAY, GroupBy.EDITOR, ReportFilter(language="python"))
    report = read_report(actor=company.developer.actor, kind=ReportKind.QUALITY, query=report_query)

    assert disclosed_groups(report) == {"zed"}
