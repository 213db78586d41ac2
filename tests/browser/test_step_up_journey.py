"""Destructive actions require a step-up (signing in again), and continue after it.

No step-up is required for some minutes after a sign-in.
"""

import re

import pytest
from playwright.sync_api import Page, expect

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.models import ApiKey, AuditEntry
from tests.browser.sessions import expire_password_check, session_of
from tests.browser.tabs import Look, Tabs
from tests.fixtures.companies import PASSWORD, Company, make_company, make_key


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.ADMINISTRATOR: "ann", Role.DEVELOPER: "dan"})


@pytest.mark.parametrize("has_scripts", [True, pytest.param(False, marks=pytest.mark.deep)])
def test_revoking_a_key_continues_after_the_password(
    tabs: Tabs, company: Company, has_scripts: bool
) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id
    session = session_of(company.administrator, confirmed=False)
    page = tabs.open(session, Look(has_scripts=has_scripts))

    page.goto(f"/keys/{lookup_id}/revoke")
    expect(page).to_have_url(re.compile(r"/account/confirm\?next="))
    confirm(page, PASSWORD)
    expect(page).to_have_url(f"/keys/{lookup_id}/revoke")
    page.get_by_role("button", name="Revoke key").click()

    expect(page.get_by_text("Laptop revoked")).to_be_visible()
    assert not is_in_force(company, lookup_id)


@pytest.mark.parametrize("has_scripts", [True, pytest.param(False, marks=pytest.mark.deep)])
def test_a_step_up_keeps_the_text_that_the_user_has_typed(
    tabs: Tabs, company: Company, has_scripts: bool
) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id
    session = session_of(company.administrator)
    page = tabs.open(session, Look(has_scripts=has_scripts))

    page.goto(f"/keys/{lookup_id}/revoke")
    page.fill("[name=reason]", 'Found in "public" <code>')
    expire_password_check(session)
    page.get_by_role("button", name="Revoke key").click()
    confirm(page, PASSWORD)
    expect(page.get_by_role("heading", name="Identity confirmed")).to_be_visible()
    still_in_force = is_in_force(company, lookup_id)
    page.get_by_role("button", name="Continue").click()

    expect(page.get_by_text("Laptop revoked")).to_be_visible()
    assert still_in_force
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="key.revoked", target=f"key:{lookup_id}")
    assert entry.reason == 'Found in "public" <code>'


def test_a_wrong_password_does_not_complete_the_step_up(tabs: Tabs, company: Company) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id
    page = tabs.open(session_of(company.administrator, confirmed=False))

    page.goto(f"/keys/{lookup_id}/revoke")
    confirm(page, "wrong password")
    expect(page.get_by_role("alert")).to_be_visible()
    page.goto(f"/keys/{lookup_id}/revoke")

    expect(page).to_have_url(re.compile(r"/account/confirm\?next="))
    assert is_in_force(company, lookup_id)


def confirm(page: Page, password: str) -> None:
    page.fill("input[name=password]", password)
    page.get_by_role("button", name="Continue").click()


def is_in_force(company: Company, lookup_id: str) -> bool:
    with tenant_scope(company.tenant_id):
        return ApiKey.objects.get(lookup_id=lookup_id).revoked_at is None
