"""The search that Ctrl K opens."""

from playwright.sync_api import Route, expect

from tests.browser.sessions import session_of
from tests.browser.tabs import DESKTOP, Tabs
from tests.fixtures.companies import ACME_PEOPLE, make_company


def test_one_press_of_escape_closes_the_search(tabs: Tabs) -> None:
    company = make_company("initech", ACME_PEOPLE)
    page = tabs.open(session_of(company.administrator), DESKTOP)
    page.goto("/help")

    page.keyboard.press("Control+k")
    page.locator("#palette-q").press_sequentially("policy")
    expect(page.locator("#palette-results a").first).to_be_visible()
    page.keyboard.press("Escape")

    expect(page.locator("#palette")).to_be_hidden()


def test_typing_during_a_slow_response_shows_the_last_results_and_no_error(tabs: Tabs) -> None:
    company = make_company("initech", ACME_PEOPLE)
    page = tabs.open(session_of(company.administrator), DESKTOP)
    page.goto("/help")
    searches: list[Route] = []
    # Keep the requests of the search waiting.
    page.route("**/search?**", lambda route: searches.append(route))

    page.keyboard.press("Control+k")
    page.locator("#palette-q").fill("policy")
    while not searches:
        page.wait_for_timeout(10)
    page.locator("#palette-q").fill("audit")
    page.wait_for_timeout(500)  # longer than the field waits for the next key
    # From now on, requests are answered at once. The newest route applies.
    page.route("**/search?**", lambda route: route.continue_())
    for search in searches:
        search.continue_()

    expect(page.locator("#palette-results")).to_contain_text("Audit log")
    expect(page.locator("#palette-results")).not_to_contain_text("Policy")
    # At its end, the fixture `tabs` fails if the browser has reported an error.
