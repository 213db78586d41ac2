"""Usage reports, the requests behind them, and the stages of one request."""

import csv
import io
import re
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.layout.lists import csv_response, list_page
from tenants.base.permissions import Role
from tenants.models import AuditEntry
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company, make_completion
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import MAX_QUERIES, few_queries
from tests.integration.console.pages.usage_rows import (
    add_requests,
    make_colleagues,
    minutes_ago,
    roll_up,
)
from tests.integration.tenants.records import add_outcome

PAGES = ["/usage", "/usage/quality", "/usage/requests"]


@pytest.fixture
def company(stopped_clock: datetime) -> Company:  # so that no hour ends during a test
    return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def busy_company(company: Company) -> Company:
    """Add two python requests for each of six users, and a slow cobol request for one of them."""
    for person in [company.developer, *make_colleagues(company, 5)]:
        add_requests(company, person, num=2, accepted=1)
    add_requests(company, company.developer, language="cobol", first_token_ms=900.0)
    roll_up(company)
    return company


@pytest.fixture
def alice(busy_company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Alice, the administrator."""
    return sign_in(busy_company.administrator)


def usage_page(client: Client, path: str, **query: str) -> str:
    return client.get(path, query).content.decode()


def links_to_requests(page: str) -> list[str]:
    return re.findall(r'href="/usage/requests/([0-9a-f-]{36})"', page)


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("role", list(Role))
def test_every_page_opens_for_every_role_except_the_quality_report_for_billing(
    company: Company, sign_in: SignIn, role: Role, path: str
) -> None:
    client = sign_in(company.people[role])
    is_open = not (role is Role.BILLING and path == "/usage/quality")

    assert client.get(path).status_code == (200 if is_open else 403)
    assert (f'href="{path}?' in usage_page(client, "/usage")) == is_open  # linked only if open


@pytest.mark.parametrize("path", [*PAGES, f"/usage/requests/{uuid.UUID(int=0)}"])
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"] == f"/sign-in?next={path}"


# "x" is no grouping: the response has status 400, and its page groups by day.
@pytest.mark.parametrize("group_by", ["day", "team", "language", "editor", "model", "variant", "x"])
@pytest.mark.parametrize("path", ["/usage", "/usage/quality"])
def test_each_grouping_needs_few_queries(alice: Client, path: str, group_by: str) -> None:
    with few_queries(at_most=MAX_QUERIES + 1):  # one query more than a page without a filter
        page = usage_page(alice, path, group_by=group_by, editor="zed")

    assert "Total" in page


def test_groups_that_are_too_small_are_listed_without_numbers(alice: Client) -> None:
    page = usage_page(alice, "/usage", group_by="language")

    assert page.count("hidden: too few users") == 1
    assert page.count("hidden: would reveal a small group") == 1
    assert '<span class="name">COBOL</span>' in page


def test_the_csv_report_has_the_figures_of_the_page(alice: Client) -> None:
    answer = alice.get("/usage", {"group_by": "editor", "as": "csv"})

    zed, total, *_notes = csv.DictReader(io.StringIO(answer.content.decode()))
    assert (zed["editor"], zed["users"], zed["requests"]) == ("zed", "6", "13")
    assert (total["editor"], total["requests"]) == ("total", "13")
    assert "usage-by-editor.csv" in answer["Content-Disposition"]


@pytest.mark.parametrize("path", ["/usage", "/usage/quality", "/cache", "/experiments"])
def test_a_csv_file_ends_with_the_notes_of_its_page(alice: Client, path: str) -> None:
    page = alice.get(path).content.decode()
    lines = alice.get(path, {"as": "csv"}).content.decode().splitlines()

    (complete_until,) = re.findall(r"Complete up to\s*<time[^>]*>([^<]+)<", page)
    assert [line.strip('"') for line in lines[-3:]] == [
        f"Complete up to {complete_until} UTC",
        "Dates are in UTC and inclusive.",
        "Groups of fewer than 5 users are hidden.",
    ]


def test_hourly_and_own_files_omit_notes_that_do_not_apply(
    company: Company, sign_in: SignIn
) -> None:
    hours = sign_in(company.administrator).get("/usage", {"range": "24h", "as": "csv"})
    own = sign_in(company.developer).get("/usage", {"as": "csv"})

    assert "Dates are in UTC" not in hours.content.decode()
    assert "users are hidden" not in own.content.decode()
    assert own.content.decode().splitlines()[-2] == "No usage counted yet"


def test_a_csv_file_hides_small_groups(alice: Client) -> None:
    answer = alice.get("/usage", {"group_by": "language", "as": "csv"})

    cobol = next(csv.DictReader(io.StringIO(answer.content.decode())))
    assert (cobol["language"], cobol["requests"], cobol["users"]) == ("cobol", "", "")
    assert cobol["suppressed"] == "fewer users than the tenant's minimum"


def test_a_csv_file_escapes_formulas(company: Company, sign_in: SignIn) -> None:
    add_requests(company, company.developer, language="=1+1")
    roll_up(company)

    answer = sign_in(company.developer).get("/usage", {"group_by": "language", "as": "csv"})

    assert "'=1+1" in answer.content.decode()


INVALID_DATES = {"range": "custom", "start": "2026-02-30"}


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        *((path, INVALID_DATES, "start") for path in [*PAGES, "/cache", "/experiments"]),
        ("/usage", {"range": "custom", "end": "2199-01-01"}, "end"),
        ("/usage", {"group_by": "x"}, "group_by"),
        ("/usage", {"team": "x"}, "team"),
        ("/usage/requests", {"mode": "x"}, "mode"),
        ("/usage/requests", {"order": "x"}, "order"),
        ("/usage/requests", {"hour": "9999-12-31T23:30:00Z"}, "hour"),
    ],
)
def test_an_invalid_filter_makes_no_file(
    alice: Client, path: str, query: dict[str, str], field: str
) -> None:
    answer = alice.get(path, query | {"as": "csv"})

    assert answer.status_code == 400
    assert answer["Content-Type"].startswith("text/plain")
    assert answer.content.decode().startswith(f"{field}: ")


def test_the_file_of_requests_has_all_requests_that_match_the_filters(
    company: Company, sign_in: SignIn
) -> None:
    add_requests(company, company.developer, num=60)
    add_requests(company, company.developer, language="cobol")

    answer = sign_in(company.administrator).get(
        "/usage/requests", {"language": "python", "as": "csv"}
    )

    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert len({row["request_id"] for row in rows}) == 60


def test_a_truncated_file_ends_with_a_note(
    company: Company, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_response, "MAX_PAGE", 10)
    monkeypatch.setattr(csv_response, "MAX_ROWS", 10)
    monkeypatch.setattr(list_page, "MAX_PAGE", 10)
    add_requests(company, company.developer, num=11)

    answer = sign_in(company.administrator).get("/usage/requests", {"as": "csv"})
    lines = answer.content.decode().splitlines()

    assert len(lines) == 12  # the header, ten rows and the note
    assert lines[-1].startswith('"Truncated: a file has at most 10 rows.')


def test_a_file_of_a_long_period_states_that_it_has_only_recent_requests(
    company: Company, sign_in: SignIn
) -> None:
    answer = sign_in(company.administrator).get("/usage/requests", {"range": "90d", "as": "csv"})

    assert "This period is too long to be listed completely" in answer.content.decode()


def test_an_hour_links_to_the_requests_of_that_hour(alice: Client) -> None:
    page = usage_page(alice, "/usage", group_by="day", range="24h")
    (link, *_) = re.findall(r'href="/usage/requests\?([^"]*hour=[^"]*)"', page)

    requests_page = usage_page(alice, f"/usage/requests?{link.replace('&amp;', '&')}")

    assert "start=" not in link
    assert "Only requests from" in requests_page
    assert links_to_requests(requests_page)


def test_the_list_of_an_hour_excludes_requests_of_other_hours(
    company: Company, sign_in: SignIn
) -> None:
    hour = minutes_ago(300).replace(minute=0, second=0, microsecond=0)
    for minutes in (-5, 5, 65):
        add_requests(company, company.developer, at=hour + timedelta(minutes=minutes))

    page = usage_page(sign_in(company.administrator), "/usage/requests", hour=hour.isoformat())

    assert len(links_to_requests(page)) == 1


def test_an_hour_without_requests_has_an_empty_list(alice: Client) -> None:
    page = usage_page(alice, "/usage/requests", hour="2026-01-01T10:00:00+00:00")

    assert links_to_requests(page) == []
    assert "Only requests from" in page


def test_the_list_of_requests_names_no_users(busy_company: Company, alice: Client) -> None:
    with few_queries():
        page = usage_page(alice, "/usage/requests")

    assert len(links_to_requests(page)) == 13
    assert busy_company.developer.user_id not in page
    assert busy_company.developer.email not in page


@pytest.mark.parametrize(
    ("query", "num_matching"),
    [
        ({"language": "cobol"}, 1),
        ({"mode": "chat"}, 0),
        ({"ended": "completed"}, 13),
        ({"ended": "error"}, 0),
        ({"editor": "-"}, 0),  # requests of an unknown editor
        ({"range": "custom", "start": "2020-01-01", "end": "2020-01-02"}, 0),
    ],
)
def test_filters_select_the_matching_requests(
    alice: Client, query: dict[str, str], num_matching: int
) -> None:
    assert len(links_to_requests(usage_page(alice, "/usage/requests", **query))) == num_matching


def audited_lists(company: Company) -> list[Any]:
    """Return the filters of the lists of requests that the audit log has recorded."""
    with tenant_scope(company.tenant_id):
        entries = AuditEntry.objects.filter(action="request.listed").order_by("sequence")
        return [entry.after for entry in entries]


def test_listing_requests_of_few_users_is_audited(busy_company: Company, alice: Client) -> None:
    page = usage_page(alice, "/usage/requests", language="cobol")
    usage_page(alice, "/usage/requests", language="cobol", **{"as": "csv"})

    assert "requests of only a few users" in page
    of_page, of_file = audited_lists(busy_company)
    assert of_page["language"] == of_file["language"] == "cobol"


@pytest.mark.parametrize("query", [{}, {"language": "python"}, {"language": "rust"}])
def test_listing_requests_of_many_users_or_none_is_not_audited(
    busy_company: Company, alice: Client, query: dict[str, str]
) -> None:
    page = usage_page(alice, "/usage/requests", **query)

    assert "of only a few users" not in page
    assert audited_lists(busy_company) == []


def test_listing_all_requests_of_a_small_tenant_is_not_audited(
    company: Company, sign_in: SignIn
) -> None:
    add_requests(company, company.developer)

    page = usage_page(sign_in(company.administrator), "/usage/requests")

    assert len(links_to_requests(page)) == 1
    assert audited_lists(company) == []


def test_listing_ones_own_requests_is_not_audited(busy_company: Company, sign_in: SignIn) -> None:
    page = usage_page(sign_in(busy_company.developer), "/usage/requests", language="cobol")

    assert "of only a few users" not in page
    assert audited_lists(busy_company) == []


def test_requests_can_be_sorted_slowest_first(alice: Client) -> None:
    page = usage_page(alice, "/usage/requests", order="slow")

    assert re.findall(r"(\d+) ms", page)[0] == "900"
    assert "over the target" in page
    (orders,) = re.findall(r'<select id="filter-order".*?</select>', page)
    assert '<option value="">Newest</option>' in orders


def test_two_pages_list_each_request_once(company: Company, sign_in: SignIn) -> None:
    request_ids = {make_completion(company, company.developer) for _ in range(51)}
    client = sign_in(company.developer)

    first = usage_page(client, "/usage/requests")
    next_link = re.search(r'class="more"><a class="button" href="([^"]+)"', first)
    assert next_link is not None
    second = client.get(next_link[1].replace("&amp;", "&")).content.decode()

    assert len(links_to_requests(first)) == 50
    assert sorted(links_to_requests(first) + links_to_requests(second)) == sorted(request_ids)


@pytest.mark.parametrize(
    "query", [{"cursor": "x"}, {"mode": "x"}, {"order": "x"}, {"ended": "x"}, {"range": "x"}]
)
def test_an_invalid_query_is_rejected(alice: Client, query: dict[str, str]) -> None:
    assert alice.get("/usage/requests", query).status_code == 400


def test_a_developer_sees_only_their_own_requests(busy_company: Company, sign_in: SignIn) -> None:
    assert (
        len(links_to_requests(usage_page(sign_in(busy_company.developer), "/usage/requests"))) == 3
    )


def test_another_tenant_does_not_see_the_requests(busy_company: Company, sign_in: SignIn) -> None:
    client = sign_in(make_company("globex", ACME_PEOPLE).administrator)
    request_id = make_completion(busy_company, busy_company.developer)

    assert links_to_requests(usage_page(client, "/usage/requests")) == []
    assert client.get(f"/usage/requests/{request_id}").status_code == 404


def test_a_developer_cannot_open_a_colleagues_request(company: Company, sign_in: SignIn) -> None:
    request_id = make_completion(company, company.administrator)

    assert sign_in(company.developer).get(f"/usage/requests/{request_id}").status_code == 404


def test_a_request_shows_its_stages_and_its_anomalies(company: Company, sign_in: SignIn) -> None:
    request_id = make_completion(  # with 1,900 prompt tokens
        company, company.developer, engine_ms=400.0, first_token_ms=403.0, cached_tokens=0
    )
    client = sign_in(company.developer)

    with few_queries():
        page = usage_page(client, f"/usage/requests/{request_id}")

    assert page.count('class="waterfall"') == 7  # one for each stage that the page shows
    assert "Cold cache: the engine prefilled 1,900 of 1,900 prompt tokens." in page
    assert page.count('class="over"') == 1  # the stage that took too long
    assert "another user’s request" not in page


def test_a_request_shows_when_its_text_was_on_the_screen(company: Company, sign_in: SignIn) -> None:
    request_id = make_completion(company, company.developer)
    add_outcome(company, uuid.UUID(request_id), "shown", display_ms=137)

    page = usage_page(sign_in(company.developer), f"/usage/requests/{request_id}")

    assert "137 ms" in page


def test_opening_a_colleagues_request_is_audited(company: Company, sign_in: SignIn) -> None:
    request_id = make_completion(company, company.developer)

    page = usage_page(sign_in(company.administrator), f"/usage/requests/{request_id}")

    assert "This is another user’s request" in page
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="request.explained")
    assert entry.target == f"request:{request_id}"


def test_the_hour_filter_is_kept_when_another_filter_changes(
    company: Company, sign_in: SignIn
) -> None:
    client = sign_in(company.administrator)

    with_hour = client.get("/usage/requests", {"hour": "2026-11-20T12:00:00Z"}).content.decode()
    without_hour = client.get("/usage/requests").content.decode()

    assert '<input type="hidden" name="hour" value="2026-11-20T12:00:00Z">' in with_hour
    assert 'name="hour"' not in without_hour
