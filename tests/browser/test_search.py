"""The search that Ctrl K opens."""

from playwright.sync_api import expect

from tests.browser.sessions import session_of
from tests.browser.tabs import DESKTOP, Tabs
from tests.fixtures.companies import ACME, make_company


def test_one_press_of_escape_closes_the_search(tabs: Tabs) -> None:
    company = make_company("initech", ACME)
    page = tabs.open(session_of(company.administrator), DESKTOP)
    page.goto("/help")

    page.keyboard.press("Control+k")
    page.locator("#palette-q").press_sequentially("policy")
    expect(page.locator("#palette-results a").first).to_be_visible()
    page.keyboard.press("Escape")

    expect(page.locator("#palette")).to_be_hidden()
