"""The database's owner changes an audit entry directly; the page reports which one."""

import psycopg
import pytest
from playwright.sync_api import Page, expect

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.models import AuditEntry
from tests.browser.sessions import session_of
from tests.browser.tabs import Look, Tabs
from tests.fixtures.companies import Company, make_company, make_key
from tests.stack.services import Services

TABLE = "tenants_auditentry"


@pytest.fixture
def company() -> Company:
    tenant = make_company("initech", {Role.AUDITOR: "audrey", Role.DEVELOPER: "dan"})
    make_key(tenant, tenant.developer)
    return tenant


@pytest.mark.parametrize("has_scripts", [True, pytest.param(False, marks=pytest.mark.deep)])
def test_a_changed_entry_is_reported_by_verification(
    tabs: Tabs, services: Services, company: Company, has_scripts: bool
) -> None:
    page = tabs.open(session_of(company.people[Role.AUDITOR]), Look(has_scripts=has_scripts))
    page.goto("/audit")
    expect(page.get_by_text("key.created").first).to_be_visible()

    verify_chain(page)
    expect(page.get_by_text("Verified: no entry was changed or removed.")).to_be_visible()
    changed_entry = tamper(services, company)
    verify_chain(page)

    expect(page.get_by_role("alert")).to_contain_text(
        f"The chain is broken at entry {changed_entry}."
    )


def verify_chain(page: Page) -> None:
    page.goto("/audit/verify")
    page.get_by_role("button", name="Verify now").click()


def tamper(services: Services, company: Company) -> int:
    """Change an entry and return its number."""
    with tenant_scope(company.tenant_id):
        sequence = AuditEntry.objects.get(action="key.created").sequence
    with psycopg.connect(services.owner_database_url, autocommit=True) as owner:
        # FORCE applies row-level security also to the table's owner.
        owner.execute(f"ALTER TABLE {TABLE} NO FORCE ROW LEVEL SECURITY")
        owner.execute(
            f"UPDATE {TABLE} SET reason = 'nothing to see' WHERE sequence = %s AND tenant_id = %s",  # noqa: S608  # a constant
            (sequence, company.tenant_id),
        )
        owner.execute(f"ALTER TABLE {TABLE} FORCE ROW LEVEL SECURITY")
    return sequence
