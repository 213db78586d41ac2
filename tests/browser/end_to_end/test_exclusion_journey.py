"""A path is tested against unsaved exclusion rules; once saved, the gateway enforces them."""

import pytest
from playwright.sync_api import Page, expect

from tenants.base.permissions import Role
from tests.browser.axe import find_violations
from tests.browser.end_to_end.gateway import (
    MAX_SYNC_S,
    complete,
    error_code_of,
    make_known_key,
)
from tests.browser.sessions import session_of
from tests.browser.tabs import Look, Tabs
from tests.fixtures.companies import Company, make_company
from tests.stack.running import Stack
from tests.stack.waiting import wait_until

pytestmark = [pytest.mark.engine, pytest.mark.deep]  # long
_EXCLUDED, _OTHER = "deploy/prod.tfvars", "deploy/main.py"
_PATTERN = "**/*.tfvars"


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.ADMINISTRATOR: "ann", Role.DEVELOPER: "dan"})


@pytest.mark.parametrize("has_scripts", [True, False])
def test_the_gateway_enforces_what_the_path_test_shows(
    tabs: Tabs, stack: Stack, company: Company, has_scripts: bool
) -> None:
    key = make_known_key(stack, company)
    page = tabs.open(session_of(company.administrator), Look(has_scripts=has_scripts))
    page.goto("/content-exclusion")

    page.get_by_label("New path pattern").fill(_PATTERN)
    assert "Excluded: this file never becomes part of a prompt." in run_path_test(page, _EXCLUDED)
    assert "Not excluded by the tenant" in run_path_test(page, _OTHER)
    response_before = complete(stack, key, file=_EXCLUDED)
    save_rules(page)
    wait_until(lambda: not complete(stack, key, file=_EXCLUDED).is_success, timeout_s=MAX_SYNC_S)

    assert response_before.is_success
    assert error_code_of(complete(stack, key, file=_EXCLUDED)) == "path_excluded"
    assert complete(stack, key, file=_OTHER).is_success


def test_a_user_without_write_permission_can_test_the_rules(tabs: Tabs, company: Company) -> None:
    page = tabs.open(session_of(company.administrator))
    page.goto("/content-exclusion")
    page.get_by_label("New path pattern").fill(_PATTERN)
    save_rules(page)

    developers_page = tabs.open(session_of(company.developer))
    developers_page.goto("/content-exclusion")

    assert _PATTERN in run_path_test(developers_page, _EXCLUDED)
    assert find_violations(developers_page) == []


def run_path_test(page: Page, path: str) -> str:
    page.get_by_role("textbox", name="Repository", exact=True).fill("payments")
    page.get_by_label("File path").fill(path)
    with page.expect_response("**/content-exclusion*"):
        page.get_by_role("button", name="Test", exact=True).click()
    expect(page.locator("#tested .note")).to_be_visible()
    return page.locator("#tested").inner_text()


def save_rules(page: Page) -> None:
    page.get_by_role("button", name="Review changes").click()
    page.get_by_label("Reason").fill("Secret filter")
    page.get_by_role("button", name="Save new version").click()
    expect(page.get_by_text("Version 2 saved.")).to_be_visible()
