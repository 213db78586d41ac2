"""Steps in the playground: start it, and get a suggestion in the empty method of its sample."""

from typing import Final

from playwright.sync_api import Page, expect

from tests.browser.tabs import Tabs

TYPED_TEXT: Final = "self.items[name] = "
GHOST: Final = ".cm-content .ghost"
_READY: Final = "#play-state[data-state=ready]"
_ROWS: Final = "#play-rows tr"
_FIRST_SUGGESTION_MS: Final = 60_000  # from an engine that has just started


def start_playground(tabs: Tabs, page: Page) -> None:
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector(_READY)
    # While the gateway does not know the key, the page retries and the browser logs an error.
    tabs.errors[:] = [error for error in tabs.errors if "WebSocket connection" not in error]


def wait_for_suggestion(page: Page) -> str:
    """Type a text, request a suggestion, and return the suggested text."""
    page.get_by_label("Trigger", exact=True).select_option("key")
    page.locator(".cm-content").focus()
    page.keyboard.type(TYPED_TEXT)
    page.keyboard.press("Alt+Backslash")
    page.wait_for_selector(GHOST, timeout=_FIRST_SUGGESTION_MS)
    expect(page.locator(_ROWS)).to_have_count(1)  # the suggestion is complete
    return page.locator(GHOST).first.inner_text()
