"""The performance page: the figures for each role, and the effect of the period and filters."""

import re
import uuid

import pytest
from django.test import Client
from django.utils import timezone

from tenants.base.permissions import Role
from tenants.identity.teams.operations import add_team_member
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.fixtures.users import make_team
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import MAX_QUERIES, few_queries
from tests.integration.console.pages.usage_rows import add_requests, make_colleagues, roll_up

pytestmark = pytest.mark.usefixtures("stopped_clock")  # so that no hour ends during a test
FIGURES = ["First token p99, inline", "Cancellation rate", "Prefix-cache hits", "Acceptance rate"]
HTMX_HEADERS = {"HX-Request": "true"}


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def busy_company(company: Company) -> Company:
    """Make a company in which six users make two requests each in python.

    One of the six also makes a request in cobol, and one in python that is superseded.
    """
    people = [company.developer, *make_colleagues(company, 5)]
    for person in people:
        add_requests(company, person, num=2, accepted=1)
    add_requests(company, company.developer, language="cobol")
    add_requests(company, company.developer, finish_reason="superseded", first_token_ms=None)
    roll_up(company)
    return company


def list_figures(page: str) -> list[str]:
    return re.findall(r'<dt><a href="[^"]*">([^<]+)</a></dt>', page)


def value_of(page: str, label: str) -> str:
    match = re.search(rf">{label}</a></dt>\s*<dd><span class=\"figure-value\">([^<]*)<", page)
    return "" if match is None else match[1]


def performance_page(client: Client, **query: str) -> str:
    return client.get("/performance", query).content.decode()


@pytest.mark.parametrize("role", list(Role))
def test_each_role_sees_its_figures_in_order(
    busy_company: Company, sign_in: SignIn, role: Role
) -> None:
    page = performance_page(sign_in(busy_company.people[role]))

    expected = [*FIGURES, "Engine load"]
    if role is Role.BILLING:
        expected.remove("Acceptance rate")
    assert list_figures(page) == expected
    assert ("Your own requests" in page) == (role is Role.DEVELOPER)


def test_the_figures_are_computed_from_the_usage_records(
    busy_company: Company, sign_in: SignIn
) -> None:
    page = performance_page(sign_in(busy_company.administrator))

    # Of the 14 requests, one is superseded and counts as cancelled. Six suggestions are accepted.
    # `add_completion` sets 80 cached tokens of 100 prompt tokens, and the editor zed.
    assert value_of(page, "First token p99, inline") == "40 ms"
    assert value_of(page, "Cancellation rate") == "7.1%"
    assert value_of(page, "Prefix-cache hits") == "80.0%"
    assert value_of(page, "Acceptance rate") == "42.9%"
    assert re.search(r">\s*met\s*<", page)


def test_a_missed_target_is_marked(company: Company, sign_in: SignIn) -> None:
    add_requests(company, company.developer, first_token_ms=150.0)
    roll_up(company)

    page = performance_page(sign_in(company.developer))

    assert "figure-bad" in page
    assert re.search(r">\s*missed\s*<", page)


def test_a_developer_sees_only_their_own_figures(busy_company: Company, sign_in: SignIn) -> None:
    page = performance_page(sign_in(busy_company.developer))

    assert value_of(page, "Cancellation rate") == "25.0%"  # one of the developer's four requests


def test_another_tenant_does_not_see_the_figures(busy_company: Company, sign_in: SignIn) -> None:
    other_company = make_company("globex", GLOBEX_PEOPLE)

    page = performance_page(sign_in(other_company.administrator))

    assert "No requests in this period" in page
    assert busy_company.slug not in page
    assert list_figures(page) == []


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/performance", "No requests in this period"),
        ("/cache", "No usage in this period"),
        ("/usage", "No usage in this period"),
    ],
)
def test_the_title_of_an_empty_page_is_true_with_filters_and_without(
    company: Company, sign_in: SignIn, path: str, title: str
) -> None:
    client = sign_in(company.administrator)

    page = client.get(path).content.decode()
    filtered_page = client.get(path, {"language": "cobol"}).content.decode()

    assert f">{title}<" in page
    assert ">No requests found<" in filtered_page
    assert f">{title}<" not in filtered_page


def test_a_filter_that_would_reveal_few_users_hides_the_figures(
    busy_company: Company, sign_in: SignIn
) -> None:
    """Only one user uses cobol. The total minus the python figures would reveal this user's."""
    client = sign_in(busy_company.administrator)

    cobol_page, python_page = (
        performance_page(client, language="cobol"),
        performance_page(client, language="python"),
    )

    assert "Hidden to protect privacy" in cobol_page
    assert "Hidden to protect privacy" in python_page
    assert list_figures(cobol_page) == list_figures(python_page) == []


def test_a_developer_sees_their_own_figures_for_any_filter(
    busy_company: Company, sign_in: SignIn
) -> None:
    page = performance_page(sign_in(busy_company.developer), language="cobol")

    assert value_of(page, "Cancellation rate") == "0.0%"
    assert '<option value="cobol" selected>' in page


def test_an_unknown_team_has_no_figures(busy_company: Company, sign_in: SignIn) -> None:
    page = performance_page(sign_in(busy_company.administrator), team=str(uuid.UUID(int=0)))

    assert list_figures(page) == []
    assert ">No requests found<" in page


@pytest.mark.parametrize("period", ["24h", "7d", "30d", "90d", "custom"])
def test_each_period_needs_few_queries(busy_company: Company, sign_in: SignIn, period: str) -> None:
    client = sign_in(busy_company.administrator)

    with few_queries(MAX_QUERIES + 1):  # one query more than a page without a filter
        page = performance_page(client, range=period, editor="zed")

    assert value_of(page, "Prefix-cache hits") == "80.0%"


def test_filtering_by_team_needs_few_queries(company: Company, sign_in: SignIn) -> None:
    team_id = make_team(company)
    for person in make_colleagues(company, 5):
        add_requests(company, person)
        add_team_member(
            actor=company.platform,
            team_id=uuid.UUID(team_id),
            user_id=person.user_id,
            now=timezone.now(),
        )
    roll_up(company)
    client = sign_in(company.administrator)

    with few_queries(MAX_QUERIES + 1):  # one query more than a page without a filter
        page = performance_page(client, team=team_id, editor="zed")

    assert value_of(page, "Prefix-cache hits") == "80.0%"
    assert f'<option value="{team_id}" selected>' in page


@pytest.mark.parametrize(
    ("query", "date"),
    [
        ({"range": "custom", "start": "2026-11-09", "end": "2026-11-01"}, "2026-11-01"),
        ({"range": "custom", "start": "2020-01-01", "end": "2026-11-01"}, "2020-01-01"),
        ({"range": "custom", "start": "soon"}, "soon"),
        ({"range": "custom", "start": "9998-01-01"}, "9998-01-01"),
        ({"range": "custom", "start": "0001-01-01"}, "0001-01-01"),
    ],
    ids=[
        "end_before_start",
        "over_a_year",
        "no_date",
        "start_in_future",
        "over_a_year_until_today",
    ],
)
def test_invalid_dates_get_an_error_and_stay_in_the_form(
    company: Company, sign_in: SignIn, query: dict[str, str], date: str
) -> None:
    answer = sign_in(company.administrator).get("/performance", query)

    page = answer.content.decode()
    assert answer.status_code == 400
    assert f'value="{date}"' in page
    assert 'class="wrong"' in page


@pytest.mark.parametrize("query", [{"range": "always"}, {"team": "x"}, {"language": "x" * 200}])
def test_an_invalid_query_is_rejected(
    company: Company, sign_in: SignIn, query: dict[str, str]
) -> None:
    assert sign_in(company.administrator).get("/performance", query).status_code == 400


def test_the_filter_is_escaped(company: Company, sign_in: SignIn) -> None:
    page = performance_page(sign_in(company.administrator), language='"><script>')

    assert "<script>" not in page
    assert '<option value="&quot;&gt;&lt;script&gt;" selected>' in page


def test_an_htmx_request_gets_only_the_figures(busy_company: Company, sign_in: SignIn) -> None:
    page = (
        sign_in(busy_company.administrator)
        .get("/performance", headers=HTMX_HEADERS)
        .content.decode()
    )

    assert "<html" not in page
    assert list_figures(page) == [*FIGURES, "Engine load"]


def test_the_last_minutes_figures_need_no_script(busy_company: Company, sign_in: SignIn) -> None:
    page = performance_page(sign_in(busy_company.administrator))

    assert '<dd data-live-value="requests">14</dd>' in page
    assert '<dd data-live-value="accepted">6</dd>' in page


def test_billing_does_not_see_live_acceptances(busy_company: Company, sign_in: SignIn) -> None:
    page = performance_page(sign_in(busy_company.people[Role.BILLING]))

    assert 'data-live-value="requests"' in page
    assert 'data-live-value="accepted"' not in page
