"""A policy change: previewed, saved, effective at the gateway, undone."""

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
from tests.browser.tabs import Tabs
from tests.fixtures.companies import Company, make_company
from tests.stack.running import Stack
from tests.stack.waiting import wait_until

pytestmark = pytest.mark.engine
_FEATURE = "Fill in the middle"


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.ADMINISTRATOR: "ann", Role.DEVELOPER: "dan"})


def test_a_reviewed_change_takes_effect_only_after_saving(
    tabs: Tabs, stack: Stack, company: Company
) -> None:
    key = make_known_key(stack, company)
    page = tabs.open(session_of(company.administrator))

    review_disabling(page, _FEATURE)
    expect(page.locator("#changes")).to_contain_text(f"− {_FEATURE}")
    expect(page.locator("#effects")).to_contain_text("2 members")
    assert find_violations(page) == []
    response_during_review = complete(stack, key)
    save_policy(page, "Not needed")

    wait_until(lambda: not complete(stack, key).is_success, timeout_s=MAX_SYNC_S)
    assert response_during_review.is_success
    assert error_code_of(complete(stack, key)) == "feature_disabled"


def test_the_toast_undoes_a_saved_change(tabs: Tabs, stack: Stack, company: Company) -> None:
    key = make_known_key(stack, company)
    page = tabs.open(session_of(company.administrator))
    review_disabling(page, _FEATURE)
    save_policy(page, "By mistake")
    wait_until(lambda: not complete(stack, key).is_success, timeout_s=MAX_SYNC_S)

    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Change undone. Version 3 is now active.")).to_be_visible()

    wait_until(lambda: complete(stack, key).is_success, timeout_s=MAX_SYNC_S)


def review_disabling(page: Page, feature: str) -> None:
    page.goto("/policies")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label(feature).uncheck()
    page.get_by_role("button", name="Review changes").click()


def save_policy(page: Page, reason: str) -> None:
    page.get_by_label("Reason").fill(reason)
    page.get_by_role("button", name="Save new version").click()
    expect(page.get_by_text("Version 2 saved.")).to_be_visible()
