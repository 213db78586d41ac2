"""A member of two companies signs in and switches between them."""

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from tenants.base.permissions import Role
from tenants.identity.members.operations import add_member
from tenants.security.authorization.actor import build_system_actor
from tests.browser.tabs import Look, Tabs
from tests.fixtures.companies import PASSWORD, Company, Person, make_company

with_and_without_scripts = pytest.mark.parametrize(
    "has_scripts", [True, pytest.param(False, marks=pytest.mark.deep)]
)


@pytest.fixture
def initech() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


@pytest.fixture
def olga(initech: Company) -> Person:
    return initech.people[Role.OWNER]


@pytest.fixture
def hooli(olga: Person) -> Company:
    """Make a company in which olga is an auditor."""
    company = make_company("hooli", {Role.OWNER: "gavin"})
    actor = build_system_actor(company.tenant_id)
    add_member(actor=actor, user_id=olga.user_id, role=Role.AUDITOR, now=timezone.now())
    return company


@with_and_without_scripts
def test_signing_in_opens_the_requested_page(tabs: Tabs, olga: Person, has_scripts: bool) -> None:
    page = tabs.open(look=Look(has_scripts=has_scripts))
    page.goto("/keys")

    sign_in(page, olga)

    expect(page).to_have_url("/keys")


def test_a_wrong_password_keeps_the_typed_address(tabs: Tabs, olga: Person) -> None:
    page = tabs.open()
    page.goto("/sign-in")

    sign_in(page, olga, password="wrong password")

    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator("input[name=email]")).to_have_value(olga.email)
    tabs.errors.clear()  # the browser reports the response's status


@with_and_without_scripts
def test_the_menu_switches_between_two_companies(
    tabs: Tabs, initech: Company, hooli: Company, olga: Person, has_scripts: bool
) -> None:
    page = tabs.open(look=Look(has_scripts=has_scripts))
    page.goto("/")
    sign_in(page, olga)
    expect(current_tenant(page)).to_have_text("Hooli")  # the first by name

    switch_to(page, initech)
    expect(current_tenant(page)).to_have_text("Initech")
    expect(page.locator("aside")).to_contain_text("Owner")
    switch_to(page, hooli)

    expect(current_tenant(page)).to_have_text("Hooli")
    expect(page.locator("aside")).to_contain_text("Auditor")


def sign_in(page: Page, person: Person, password: str = PASSWORD) -> None:
    page.fill("input[name=email]", person.email)
    page.fill("input[name=password]", password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def current_tenant(page: Page) -> Locator:
    return page.locator("aside .tenant-name")


def switch_to(page: Page, company: Company) -> None:
    page.locator("aside .side-tenant summary").click()
    page.locator(f"button[value='{company.tenant_id}']").click()
    page.wait_for_url("/")
