"""The first run: a developer signs in and accepts a suggestion.

The developer's login is in `.caret/up.json`. (`make up` prints only the other logins.)
"""

import pytest
from playwright.sync_api import expect

from tests.browser.end_to_end.playground import (
    GHOST,
    TYPED_TEXT,
    start_playground,
    wait_for_suggestion,
)
from tests.browser.tabs import Tabs
from tests.stack.running import Stack

pytestmark = pytest.mark.engine


def test_a_developer_signs_in_and_accepts_a_suggestion(tabs: Tabs, stack: Stack) -> None:
    login = stack.tenant("acme")
    page = tabs.open()
    page.goto("/")
    page.get_by_label("E-mail").fill(login.developer_email)
    page.get_by_label("Password").fill(login.developer_password)
    page.get_by_role("button", name="Sign in", exact=True).click()

    page.goto("/onboarding")
    page.get_by_role("link", name="Open the playground").click()
    start_playground(tabs, page)
    text = wait_for_suggestion(page)
    page.keyboard.press("Tab")

    expect(page.locator(".cm-content")).to_contain_text(TYPED_TEXT + text)
    expect(page.locator(GHOST)).to_have_count(0)
