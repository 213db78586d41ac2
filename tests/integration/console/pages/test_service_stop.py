"""The banner on all pages of a tenant that gets no completions, or whose trial ends soon."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_month, utc_day
from tenants.base.permissions import Role
from tenants.billing.budgets.alerts import create_alerts
from tenants.billing.budgets.month_spend import SpendEntry, add_spend
from tenants.billing.budgets.operations import BudgetTerms, change_budget
from tenants.compliance.tenant_closing import begin_closing
from tenants.identity.members.tenant_status import set_status
from tenants.models import Tenant
from tests.fakes.billing import make_budget, make_customer
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company

if TYPE_CHECKING:
    from tests.integration.console.conftest import SignIn

# Otherwise a day or a month could end between the set-up and the page.
pytestmark = pytest.mark.usefixtures("stopped_clock")

PAGES = ("/", "/keys", "/account/password")
_BANNER = b"service-stop"  # the CSS class


@pytest.fixture
def company() -> Company:
    return make_company("stopped", ACME_PEOPLE)


def set_statuses(company: Company, *statuses: TenantStatus) -> None:
    for status in statuses:
        set_status(actor=company.platform, status=status, reason="unpaid", now=timezone.now())


def spend_all(company: Company, *, limit_micros: int) -> None:
    """Spend the limit of a budget today, and create the alerts of the budget."""
    today = utc_day(timezone.now())
    with tenant_scope(company.tenant_id):
        add_spend(company.tenant_id, [SpendEntry(today, None, limit_micros)])
        create_alerts(company.tenant_id, start_of_month(today), price=None, now=timezone.now())


@pytest.mark.parametrize("role", [Role.OWNER, Role.DEVELOPER])
def test_every_page_of_a_suspended_tenant_says_so(
    company: Company, sign_in: SignIn, role: Role
) -> None:
    set_statuses(company, TenantStatus.SUSPENDED)
    client = sign_in(company.people[role])

    for path in PAGES:
        page = client.get(path, follow=True).content
        assert b"is suspended." in page
        assert f'datetime="{timezone.now():%Y-%m-%dT%H:%M}'.encode() in page
        assert (b"The reason is in the audit log." in page) is (role is Role.OWNER)


def test_the_banner_of_a_closing_tenant_links_to_the_exports(
    company: Company, sign_in: SignIn
) -> None:
    set_statuses(company, TenantStatus.SUSPENDED, TenantStatus.CLOSING)

    page = sign_in(company.people[Role.OWNER]).get("/keys", follow=True).content

    assert b"is closing." in page
    banner = page.partition(_BANNER)[2].partition(b"</div></div>")[0]
    assert b'href="/exports"' in banner


def test_the_banner_of_a_closing_tenant_names_the_day_of_the_deletion(
    company: Company, sign_in: SignIn
) -> None:
    closes_at = begin_closing(
        actor=company.platform, reason="end", now=timezone.now(), grace_days=14
    )

    page = sign_in(company.people[Role.DEVELOPER]).get("/keys", follow=True).content.decode()

    day = f"{closes_at.day} {closes_at:%B %Y}"
    assert f"We delete all data on {day}." in page


@pytest.mark.parametrize(
    ("days_left", "text"),
    [
        (8, None),
        (7, "The trial of Stopped ends on"),
        (0, "The trial of Stopped ends on"),
        (-1, "The trial of Stopped ended on"),
    ],
)
def test_the_end_of_a_trial_is_shown_from_a_week_before_it(
    company: Company, sign_in: SignIn, days_left: int, text: str | None
) -> None:
    last_day = utc_day(timezone.now()) + timedelta(days=days_left)
    Tenant.objects.filter(id=company.tenant_id).update(trial_ends_on=last_day)
    client = sign_in(company.people[Role.DEVELOPER])

    for path in PAGES:
        page = client.get(path, follow=True).content.decode()
        assert (_BANNER.decode() in page) is (text is not None)
        if text is not None:
            assert f"{text} {last_day.day} {last_day:%B %Y}." in page
            assert "contact the operator" in page


def test_a_tenant_that_is_active_again_has_no_banner(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.people[Role.OWNER])
    set_statuses(company, TenantStatus.SUSPENDED, TenantStatus.ACTIVE)

    assert _BANNER not in client.get("/keys", follow=True).content


def test_a_used_up_budget_of_the_tenant_is_shown_until_its_limit_is_raised(
    company: Company, sign_in: SignIn
) -> None:
    make_customer(company)
    budget = make_budget(company, limit_micros=1_000_000)
    client = sign_in(company.people[Role.DEVELOPER])
    assert _BANNER not in client.get("/keys", follow=True).content

    spend_all(company, limit_micros=1_000_000)
    assert b"is used up." in client.get("/keys", follow=True).content

    change_budget(
        actor=company.platform,
        budget_id=budget.id,
        terms=BudgetTerms(1_000_000_000, is_hard=True, webhook_url=""),
        version=budget.version,
        now=timezone.now() + timedelta(seconds=1),
    )
    assert _BANNER not in client.get("/keys", follow=True).content


def test_a_soft_budget_and_another_tenants_budget_show_no_banner(
    company: Company, sign_in: SignIn
) -> None:
    other_company = make_company("other", ACME_PEOPLE)
    for tenant, is_hard in ((company, False), (other_company, True)):
        make_customer(tenant)
        make_budget(tenant, limit_micros=1_000_000, is_hard=is_hard)
        spend_all(tenant, limit_micros=1_000_000)

    assert _BANNER not in sign_in(company.people[Role.OWNER]).get("/keys", follow=True).content
