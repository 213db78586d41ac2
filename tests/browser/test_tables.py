"""Lists on a phone, where tables have no column headings."""

from playwright.sync_api import expect

from tests.browser.sessions import session_of
from tests.browser.tabs import Look, Tabs
from tests.fixtures.companies import ACME, make_company
from tests.fixtures.users import make_team


def test_on_a_phone_named_links_sort_the_list(tabs: Tabs) -> None:
    company = make_company("initech", ACME)
    for name in ("Anvil", "Bellows"):
        make_team(company, name)
    tab = tabs.open(session_of(company.administrator), look=Look(width=390))
    tab.goto("/teams")
    sort_links = tab.get_by_role("navigation", name="Sort by")
    first = tab.locator("tbody th").first

    # A link is named after the current order. A click reverses it.
    sort_links.get_by_role("link", name="Team ascending").click()

    expect(sort_links.get_by_role("link", name="Team descending")).to_be_visible()
    expect(first).to_contain_text("Bellows")
    tab.set_viewport_size({"width": 1440, "height": 900})
    expect(sort_links).to_be_hidden()
