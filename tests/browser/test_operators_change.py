"""An operator changes a tenant in the browser: previews the change and confirms it with a code."""

from typing import Literal

import pytest
from playwright.sync_api import expect

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import AuditEntry, Tenant
from tests.browser.axe import find_violations
from tests.browser.tabs import PHONE, Look, Tabs
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.operators.browsers import (
    OPERATOR_SESSION_COOKIE,
    Account,
    make_account,
    new_browser,
)

Scheme = Literal["light", "dark"]


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def account() -> Account:
    return make_account()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(1440, "light"), pytest.param(PHONE.width, "dark", marks=pytest.mark.deep)],
)
def test_a_change_is_previewed_and_then_confirmed_with_a_code(
    tabs: Tabs, company: Company, account: Account, width: int, scheme: Scheme
) -> None:
    browser = new_browser()
    browser.sign_in(account.form())
    browser.open_tenant(company)
    session = OPERATOR_SESSION_COOKIE, browser.client.cookies[OPERATOR_SESSION_COOKIE].value
    page = tabs.open(session, Look(width=width, scheme=scheme, motion="reduce"))
    page.goto(f"/operators/tenants/{company.tenant_id}")

    page.locator("summary", has_text="Limits").click()
    page.get_by_label("Concurrent completions per gateway").fill("5")
    page.get_by_role("button", name="Change limits").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(company.name)
    assert find_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # The sign-in used the current code, and each code is accepted only once.
    page.get_by_label("Code from your authenticator app").fill(account.code(later_by=1))
    page.get_by_role("button", name="Confirm").click()

    expect(page).to_have_url(f"/operators/tenants/{company.tenant_id}?done=limits")
    assert Tenant.objects.get(id=company.tenant_id).max_concurrent_completions == 5
    with tenant_scope(company.tenant_id):
        assert AuditEntry.objects.filter(action__contains="limits").count() == 1
