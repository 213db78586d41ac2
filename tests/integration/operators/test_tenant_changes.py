"""Operators change a tenant's trial and owners on its page, and close the tenant."""

from datetime import timedelta

import pytest
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.data_subjects.erasure_worker import run_due_erasures
from tenants.compliance.tenant_closing import close_due_tenants
from tenants.models import Tenant
from tenants.privacy.retention.verification import verify_certificate
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.operators.browsers import CHANGE_REASON, with_recent_step_up
from tests.integration.operators.test_tenants import entries


@pytest.fixture
def acme() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.mark.parametrize("days", ["0", "366", "soon", "-1"])
def test_an_impossible_grace_period_is_refused(acme: Company, days: str) -> None:
    browser = with_recent_step_up()
    browser.open_tenant(acme)

    response = browser.change(acme, "status", status="closing", grace_days=days)

    assert response.status_code == 400
    assert Tenant.objects.get(id=acme.tenant_id).status == TenantStatus.ACTIVE


def test_an_operator_downloads_the_certificate_of_a_deleted_tenant(acme: Company) -> None:
    browser = with_recent_step_up()
    browser.open_tenant(acme)
    path = f"/operators/tenants/{acme.tenant_id}/certificate"
    browser.change(acme, "status", status="closing")
    browser.change(acme, "status", status="closed", slug=acme.slug)
    before = browser.client.get(path)

    close_due_tenants(now=timezone.now())
    run_due_erasures(now=timezone.now())
    page = browser.page(acme).content.decode()
    document = browser.client.get(path).content

    assert before.status_code == 404
    assert f'href="{path}"' in page
    facts = verify_certificate(document, load_signing_keys().public_keys())
    assert facts["tenant"] == acme.slug


def test_an_operator_changes_the_trial(acme: Company) -> None:
    browser = with_recent_step_up()
    browser.open_tenant(acme)
    day = (timezone.now() + timedelta(days=30)).date()

    begun = browser.change(acme, "trial", trial_ends_on=day.isoformat())
    page = browser.page(acme).content.decode()
    invalid_date = browser.change(acme, "trial", trial_ends_on="soon")
    removed_trial = browser.change(acme, "trial", trial_ends_on="")

    assert [answer.status_code for answer in (begun, invalid_date, removed_trial)] == [
        302,
        400,
        302,
    ]
    assert f"until the end of {day} (UTC)" in page
    assert [entry.after for entry in entries(acme, "tenant.trial_changed")] == [
        {"trial_ends_on": day.isoformat()},
        {"trial_ends_on": None},
    ]


def test_an_operator_makes_a_member_an_owner(acme: Company) -> None:
    browser = with_recent_step_up()
    browser.open_tenant(acme)

    stranger = browser.change(acme, "owner", email="eve@elsewhere.example")
    member = browser.change(acme, "owner", email=acme.administrator.email)

    assert (stranger.status_code, member.status_code) == (400, 302)
    (entry,) = entries(acme, "member.role_changed")
    assert (entry.target, entry.reason) == (f"user:{acme.administrator.user_id}", CHANGE_REASON)
