"""Lists on a phone, where tables have no column headings."""

from playwright.sync_api import expect

from tests.browser.sessions import session_of
from tests.browser.tabs import PHONE, Tabs
from tests.fixtures.companies import ACME_PEOPLE, make_company
from tests.fixtures.users import make_team


def test_on_a_phone_named_links_sort_the_list(tabs: Tabs) -> None:
    company = make_company("initech", ACME_PEOPLE)
    for name in ("Anvil", "Bellows"):
        make_team(company, name)
    tab = tabs.open(session_of(company.administrator), look=PHONE)
    tab.goto("/teams")
    sort_links = tab.get_by_role("navigation", name="Sort by")
    first_team = tab.locator("tbody th").first
    expect(first_team).to_contain_text("Anvil")

    # A link is named after the current order. A click reverses it.
    sort_links.get_by_role("link", name="Team ascending").click()

    expect(sort_links.get_by_role("link", name="Team descending")).to_be_visible()
    expect(first_team).to_contain_text("Bellows")
    # On a wide screen, the table has column headings, which sort the list.
    tab.set_viewport_size({"width": 1440, "height": 900})
    expect(sort_links).to_be_hidden()
