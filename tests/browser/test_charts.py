"""Charts in the browser: values under the pointer, hidden series, and a selection of days."""

import re
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, Request, expect
from pytest_django import DjangoDbBlocker

from tenants.base.permissions import Role
from tenants.billing.rating.operations import rate_tenant
from tests.browser.axe import find_colour_violations, find_violations
from tests.browser.sessions import Session, session_of
from tests.browser.tabs import Look, Tabs
from tests.fakes import billing
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.console.pages.usage_rows import (
    add_requests,
    make_colleagues,
    minutes_ago,
    roll_up,
)
from tests.stack.services import Services

# All requests are of this time. After midnight, it is no longer in the last day of a chart.
AT = minutes_ago(0.1)
MONTH = "/usage?range=30d&group_by=day"
# The time that tests wait for a navigation that must not happen. A selection opens its URL at once.
_NAVIGATION_MS = 500


@pytest.fixture(scope="module")
def company(services: Services, django_db_blocker: DjangoDbBlocker) -> Company:
    """Make a company with requests of today.

    12 requests with 14,808 generated tokens have suggestions; 6 superseded requests have 60 tokens.
    """
    with django_db_blocker.unblock():
        tenant = make_company("initech", ACME_PEOPLE)
        for person in [tenant.developer, *make_colleagues(tenant, 5)]:
            add_requests(tenant, person, num=2, accepted=1, at=AT, generated_tokens=1_234)
            add_requests(tenant, person, finish_reason="superseded", at=AT, generated_tokens=10)
        roll_up(tenant)
        return tenant


@pytest.fixture
def alice(company: Company) -> Session:
    return session_of(company.administrator)


# All generated tokens of the company: 14,808 and 60.
@pytest.mark.parametrize(
    ("language", "expected_text"),
    [("en", "14,868"), pytest.param("de", "14.868", marks=pytest.mark.deep)],
)
def test_pointing_at_a_day_shows_its_exact_values(
    tabs: Tabs, alice: Session, language: str, expected_text: str
) -> None:
    tab = tabs.open(alice)
    tab.context.add_cookies([{"name": "caret-language", "value": language, "url": tabs.url}])
    tab.goto(MONTH)
    chart = tab.locator("figure.chart").nth(1)  # of generated tokens
    index = days(chart).index(str(AT.date()))

    point(tab, chart, index)

    expect(chart.get_by_role("status")).to_contain_text(expected_text)
    expect(chart.get_by_role("status")).to_contain_text(times(chart)[index])


@pytest.mark.deep
def test_hours_are_in_the_browsers_time_zone(tabs: Tabs, alice: Session) -> None:
    tab = tabs.open(alice)
    tab.goto("/usage")  # a script tells the console the browser's time zone
    tab.goto("/usage?range=24h")
    chart = tab.locator("figure.chart").first

    point(tab, chart, -1)

    # An hour may end between the load of the page and now.
    last_hours = tab.evaluate("""[new Date(Date.now() - 3_600_000), new Date()].map(
      time => time.toLocaleTimeString('en-GB', {hour: '2-digit'}))""")
    pattern = "|".join(f"{int(hour):02}:" for hour in last_hours)
    expect(chart.get_by_role("status")).to_contain_text(re.compile(pattern))


@pytest.mark.deep
def test_a_series_can_be_hidden_and_shown_again(tabs: Tabs, alice: Session) -> None:
    tab = tabs.open(alice)
    tab.goto(MONTH)
    chart = tab.locator("figure.chart").first
    button = chart.get_by_role("button", name="Suggestions")
    before = picture(chart)

    button.click()

    expect(button).to_have_attribute("aria-pressed", "false")
    point(tab, chart, -1)
    expect(chart.get_by_role("status")).not_to_contain_text("Suggestions")
    assert picture(chart) != before

    button.click()

    expect(button).to_have_attribute("aria-pressed", "true")
    wait_for_picture(tab, before)


@pytest.mark.deep
def test_dragging_over_days_selects_that_period(tabs: Tabs, alice: Session) -> None:
    tab = tabs.open(alice)
    tab.goto(MONTH)
    chart = tab.locator("figure.chart").first
    first, last = days(chart)[24], days(chart)[-1]

    point(tab, chart, 24)
    tab.mouse.down()
    point(tab, chart, -1)
    tab.mouse.up()

    expect(tab).to_have_url(f"/usage?range=custom&group_by=day&start={first}&end={last}")
    assert days(tab.locator("figure.chart").first) == days_between(first, last)


@pytest.mark.deep
def test_a_click_selects_no_period(tabs: Tabs, alice: Session) -> None:
    tab = tabs.open(alice)
    tab.goto(MONTH)
    navigations = record_navigations(tab)

    point(tab, tab.locator("figure.chart").first, 20)
    tab.mouse.down()
    tab.mouse.up()

    expect(tab.locator(".u-select").first).to_have_css("width", "0px")
    tab.wait_for_timeout(_NAVIGATION_MS)
    assert navigations == []


def test_the_keyboard_can_select_days(tabs: Tabs, alice: Session) -> None:
    tab = tabs.open(alice)
    tab.goto(MONTH)
    chart = tab.locator("figure.chart").first
    first, last = days(chart)[-4], days(chart)[-2]

    chart.locator(".chart-live").focus()
    tab.keyboard.press("End")
    expect(chart.get_by_role("status")).to_contain_text(times(chart)[-1])
    tab.keyboard.press("ArrowLeft")
    expect(chart.get_by_role("status")).to_contain_text(times(chart)[-2])
    # Extend the selection from the last day but one to the two days before it.
    tab.keyboard.press("Shift+ArrowLeft")
    tab.keyboard.press("Shift+ArrowLeft")
    tab.keyboard.press("Enter")

    expect(tab).to_have_url(f"/usage?range=custom&group_by=day&start={first}&end={last}")


@pytest.mark.deep
def test_escape_clears_a_keyboard_selection(tabs: Tabs, alice: Session) -> None:
    tab = tabs.open(alice)
    tab.goto(MONTH)
    chart = tab.locator("figure.chart").first
    chart.locator(".chart-live").focus()
    tab.keyboard.press("Shift+ArrowLeft")
    expect(chart.get_by_role("status")).to_be_visible()
    navigations = record_navigations(tab)

    tab.keyboard.press("Escape")
    tab.keyboard.press("Enter")

    expect(chart.get_by_role("status")).to_be_hidden()
    tab.wait_for_timeout(_NAVIGATION_MS)
    assert navigations == []


@pytest.mark.deep
def test_hours_cannot_be_selected(tabs: Tabs, alice: Session) -> None:
    tab = tabs.open(alice)
    tab.goto("/usage?range=24h")
    chart = tab.locator("figure.chart").first
    navigations = record_navigations(tab)

    point(tab, chart, 3)
    tab.mouse.down()
    point(tab, chart, 9)
    tab.mouse.up()

    expect(chart.locator(".u-select")).to_have_css("width", "0px")
    tab.wait_for_timeout(_NAVIGATION_MS)
    assert navigations == []


def test_without_scripts_the_server_rendered_chart_is_shown(tabs: Tabs, alice: Session) -> None:
    tab = tabs.open(alice, Look(has_scripts=False))

    tab.goto(MONTH)

    expect(tab.locator("svg.chart-picture").first).to_be_visible()
    expect(tab.locator(".chart-live").first).to_be_hidden()
    expect(tab.locator(".chart-hint").first).to_be_hidden()


@pytest.mark.deep
def test_the_server_rendered_chart_is_printed(tabs: Tabs, alice: Session) -> None:
    tab = tabs.open(alice)
    tab.goto(MONTH)
    expect(tab.locator("svg.chart-picture").first).to_be_hidden()

    tab.emulate_media(media="print")

    expect(tab.locator("svg.chart-picture").first).to_be_visible()
    expect(tab.locator(".chart-live").first).to_be_hidden()


@pytest.mark.deep
def test_a_charts_colours_follow_the_systems_scheme(tabs: Tabs, alice: Session) -> None:
    tab = tabs.open(alice)
    tab.goto(MONTH)
    chart = tab.locator("figure.chart").first
    light = picture(chart)

    tab.emulate_media(color_scheme="dark")

    differs = "before => document.querySelector('canvas').toDataURL() !== before"
    tab.wait_for_function(differs, arg=light)


def test_a_chart_loaded_by_htmx_is_drawn(tabs: Tabs) -> None:
    """The link replaces the chart without loading the page again."""
    company = billing.make_old_customer(datetime(2026, 9, 1, tzinfo=UTC))
    now = timezone.now()
    billing.ingest_completion(company, company.developer, now, generated_tokens=2_000_000)
    rate_tenant(company.tenant_id, now=now + timedelta(minutes=1))
    tab = tabs.open(session_of(company.people[Role.BILLING]))
    tab.goto("/billing")
    expect(tab.locator(".chart-live canvas")).to_have_count(1)
    navigations = record_navigations(tab)

    tab.get_by_role("link", name="90 days").click()

    expect(tab).to_have_url("/billing?span=90")
    expect(tab.locator(".chart-live canvas")).to_have_count(1)
    point(tab, tab.locator("figure.chart"), -1)
    # 2,000,000 generated tokens, at 0.60 a million.
    expect(tab.locator("figure.chart").get_by_role("status")).to_contain_text("€1.20")
    assert navigations == []


@pytest.mark.deep
def test_a_chart_is_redrawn_if_the_colour_scheme_changes_while_it_loads(
    tabs: Tabs, alice: Session
) -> None:
    def load_chart(scheme: Literal["light", "dark"]) -> tuple[Page, Locator]:
        tab = tabs.open(alice, Look(scheme=scheme))
        tab.goto(MONTH)
        chart = tab.locator("figure.chart").first
        expect(chart.locator("canvas")).to_be_visible()
        return tab, chart

    _, dark_chart = load_chart("dark")
    dark = picture(dark_chart)
    _, light_chart = load_chart("light")
    changed_tab, _ = load_chart("light")
    changed_tab.emulate_media(color_scheme="dark")

    assert picture(light_chart) != dark
    wait_for_picture(changed_tab, dark)


@pytest.mark.deep
def test_axe_finds_no_serious_problems_with_usage_data(tabs: Tabs, alice: Session) -> None:
    tab = tabs.open(alice, Look(motion="reduce"))
    tab.goto(MONTH)

    chart = tab.locator("figure.chart").first
    point(tab, chart, -1)
    expect(chart.get_by_role("status")).to_be_visible()

    assert find_violations(tab) == []
    tab.emulate_media(color_scheme="dark")
    assert find_colour_violations(tab) == []


def point(tab: Page, chart: Locator, index: int) -> None:
    """Point at the value with this index, which counts from the end if it is negative."""
    plot = chart.locator(".u-over")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    num = len(times(chart))
    x = (index % num + 0.5) * box["width"] / num
    tab.mouse.move(box["x"] + x, box["y"] + box["height"] / 2, steps=4)


def picture(chart: Locator) -> str:
    """Return the picture that the chart shows.

    The browser draws in the first frame; in the second, the drawing is complete.
    """
    read_picture = """canvas => new Promise(resolve => requestAnimationFrame(
      () => requestAnimationFrame(() => resolve(canvas.toDataURL()))))"""
    url: str = chart.locator("canvas").evaluate(read_picture)
    return url


def wait_for_picture(tab: Page, expected: str) -> None:
    """Wait until the first chart shows this picture."""
    tab.wait_for_function(
        "expected => document.querySelector('canvas').toDataURL() === expected", arg=expected
    )


def record_navigations(tab: Page) -> list[str]:
    """Return a list that will contain the URL of each page that the tab loads from now on."""
    urls: list[str] = []

    def record_request(request: Request) -> None:
        if request.is_navigation_request():
            urls.append(request.url)

    tab.on("request", record_request)
    return urls


def times(chart: Locator) -> list[str]:
    return chart.locator("tbody th").all_text_contents()


def days(chart: Locator) -> list[str]:
    read_days = "rows => rows.map(row => row.dataset.day)"
    day_texts: list[str] = chart.locator("tbody tr").evaluate_all(read_days)
    return day_texts


def days_between(first: str, last: str) -> list[str]:
    begin = datetime.fromisoformat(first)
    num = (datetime.fromisoformat(last) - begin).days + 1
    return [str((begin + timedelta(days=number)).date()) for number in range(num)]
