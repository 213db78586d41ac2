"""A key's lifecycle: created in the console, used at the gateway, revoked, then rejected there."""

import pytest
from playwright.sync_api import Page, expect

from tenants.base.permissions import Role
from tests.browser.end_to_end.gateway import MAX_SYNC_S, complete, error_code_of
from tests.browser.sessions import session_of
from tests.browser.tabs import Tabs
from tests.fixtures.companies import Company, make_company
from tests.stack.running import Stack
from tests.stack.waiting import wait_until

pytestmark = pytest.mark.engine


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.ADMINISTRATOR: "ann", Role.DEVELOPER: "dan"})


def test_a_key_is_created_used_revoked_and_then_rejected(
    tabs: Tabs, stack: Stack, company: Company
) -> None:
    page = tabs.open(session_of(company.administrator))

    key = make_key(page, company.developer.email)
    wait_until(lambda: complete(stack, key).status_code != 401, timeout_s=MAX_SYNC_S)
    try_key(page)
    response = complete(stack, key)
    revoke_key(page, "Dan's laptop")
    wait_until(lambda: complete(stack, key).status_code == 401, timeout_s=MAX_SYNC_S)

    assert response.status_code == 200
    assert response.json()["usage"]["completion_tokens"] > 0
    assert error_code_of(complete(stack, key)) == "revoked_api_key"


def make_key(page: Page, owner: str) -> str:
    """Create a key and return its secret, which only this page shows."""
    page.goto("/keys")
    page.get_by_role("link", name="New key").first.click()
    page.get_by_label("Name").fill("Dan's laptop")
    page.get_by_label("Owner").fill(owner)
    page.get_by_role("button", name="Create key").click()
    return page.locator(".secret code").inner_text()


def try_key(page: Page) -> None:
    """Test the new key with the page's button. The gateway must already know the key."""
    page.get_by_role("button", name="Test this key").click()
    result = page.locator("#key-test")
    expect(result).to_contain_text("The key works.")
    expect(result).to_contain_text("ms")


def revoke_key(page: Page, name: str) -> None:
    page.goto("/keys")
    page.get_by_role("link", name=f"Revoke {name}").click()
    page.get_by_label("Reason").fill("lost")
    page.get_by_role("button", name="Revoke key").click()
    page.get_by_text(f"{name} revoked").wait_for()
