"""The playground, started, with a suggestion in its sample's empty method."""

from typing import Final

from playwright.sync_api import Page, expect

from tests.browser.tabs import Tabs

BEGUN: Final = "self.items[name] = "
GHOST: Final = ".cm-content .ghost"
_READY: Final = "#play-state[data-state=ready]"
_LINES: Final = "#play-lines tr"
_FIRST_MS: Final = 30_000  # of an engine that has just started


def start(tabs: Tabs, page: Page) -> None:
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector(_READY)
    # Where the gateway does not know the key yet the page tries again, and the browser complains.
    tabs.complaints[:] = [each for each in tabs.complaints if "WebSocket connection" not in each]


def suggested(page: Page) -> str:
    """What is suggested behind what is typed."""
    page.get_by_label("Ask", exact=True).select_option("key")
    page.locator(".cm-content").focus()
    page.keyboard.type(BEGUN)
    page.keyboard.press("Alt+Backslash")
    page.wait_for_selector(GHOST, timeout=_FIRST_MS)
    expect(page.locator(_LINES)).to_have_count(1)  # it has ended
    return page.locator(GHOST).first.inner_text()
