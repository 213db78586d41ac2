"""The text of alert e-mails about budgets that were deleted after the alert was created."""

import pytest
from django.conf import LazySettings
from django.core import mail

from tenants.billing.budgets.alert_delivery import deliver_due_alerts
from tenants.billing.budgets.operations import delete_budget
from tenants.billing.rating.operations import rate_tenant
from tests.fakes.billing import NOW, ingest_completion, make_budget, make_customer
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company


@pytest.fixture
def company() -> Company:
    company = make_company("alerts", ACME_PEOPLE)
    make_customer(company)
    return company


def test_an_alert_of_a_deleted_budget_says_that_it_was_deleted(
    company: Company, settings: LazySettings
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []
    actor = company.administrator.actor
    budget = make_budget(company, limit_micros=1_000)
    # This costs more than the budget.
    ingest_completion(company, company.developer, NOW, generated_tokens=10_000)
    rate_tenant(company.tenant_id, now=NOW)
    delete_budget(actor=actor, budget_id=budget.id, version=budget.version, now=NOW)

    num_delivered = deliver_due_alerts(company.tenant_id, now=NOW)

    assert num_delivered > 0
    (body,) = {message.body for message in mail.outbox}
    assert body.startswith("100% of a deleted budget for ")
    assert "The budget was deleted after this alert was created." in body
    assert "soft budget" not in body
