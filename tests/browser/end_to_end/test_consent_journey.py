"""Consent to content capture: from the company's setting to the certificate of the erasure.

The company allows content capture, and a user consents. When the user withdraws the consent, the
worker erases the captured content and issues a certificate.
"""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.models import ContentObject
from tests.browser.axe import find_violations
from tests.browser.end_to_end.gateway import complete, make_known_key, num_generated_tokens
from tests.browser.end_to_end.offline import change_middle_byte, download_file, run_verifier
from tests.browser.end_to_end.worker import run_now
from tests.browser.sessions import session_of
from tests.browser.tabs import Tabs
from tests.fixtures.companies import ACME_PEOPLE, Company, Person, make_company
from tests.stack.running import Stack
from tests.stack.waiting import wait_until

pytestmark = [pytest.mark.engine, pytest.mark.deep]  # long
_MAX_WORKER_S = 240.0
_VALID_SIGNATURE = "the signature is valid"


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def test_withdrawing_consent_erases_captured_content_and_leaves_a_certificate(
    tabs: Tabs, stack: Stack, company: Company, tmp_path: Path
) -> None:
    key, developer = make_known_key(stack, company), company.developer
    owners_page = tabs.open(session_of(company.people[Role.OWNER]))
    allow_content_capture(owners_page)
    developers_page = tabs.open(session_of(developer))
    give_consent(developers_page)
    wait_for_capture(stack, key, company, developer)
    withdraw_consent(developers_page)
    run_now("tenants.privacy.tasks.clean_up_content")
    wait_until(lambda: num_captured(company, developer) == 0, timeout_s=_MAX_WORKER_S)
    check_that_nothing_is_captured_without_consent(stack, key, company, owners_page)

    auditors_page = tabs.open(session_of(company.people[Role.AUDITOR]))
    check_withdrawal(auditors_page, developer.email)
    open_certificate(auditors_page)
    expect(auditors_page.get_by_role("status")).to_contain_text(_VALID_SIGNATURE)
    assert find_violations(auditors_page) == []
    file = download_file(auditors_page, "link", "Download", tmp_path)
    public_keys = download_file(auditors_page, "link", "public keys", tmp_path)

    assert run_verifier("verify_certificate", file, public_keys).startswith("OK")
    change_middle_byte(file)
    assert run_verifier("verify_certificate", file, public_keys).startswith("BROKEN")
    assert "verification failed" in verify_on_page(auditors_page, file)


def allow_content_capture(page: Page) -> None:
    page.goto("/privacy")
    page.get_by_role("link", name="Change settings").click()
    page.get_by_label("Allow content capture").check()
    page.get_by_label("Retention period in days").fill("30")
    page.get_by_role("button", name="Review changes").click()
    page.get_by_label("Reason").fill("Better suggestions")
    page.get_by_role("button", name="Save new version").click()
    expect(page.get_by_text("Version 2 saved.")).to_be_visible()


def give_consent(page: Page) -> None:
    page.goto("/account/my-data")
    page.get_by_label("I have read this and consent.").check()
    page.get_by_role("button", name="Give consent").click()
    expect(page.get_by_text("Consent given.")).to_be_visible()
    expect(page.locator("#receipts")).to_contain_text("Yes")
    assert find_violations(page) == []


def withdraw_consent(page: Page) -> None:
    page.get_by_role("link", name="Withdraw").click()
    page.get_by_role("button", name="Withdraw").click()
    expect(page.locator("#receipts tbody tr").first).to_contain_text("No")


def check_that_nothing_is_captured_without_consent(
    stack: Stack, key: str, company: Company, owners_page: Page
) -> None:
    """Request a completion with the developer's key, and check that nothing of it is stored.

    The worker stores content in the order of the completions. When it has stored a later completion
    of the owner, who consents, it has also seen the developer's.
    """
    owner = company.people[Role.OWNER]
    give_consent(owners_page)
    owners_key = make_known_key(stack, company, owner)
    wait_until(lambda: num_generated_tokens(complete(stack, key)) > 0, timeout_s=_MAX_WORKER_S)
    wait_for_capture(stack, owners_key, company, owner)
    assert num_captured(company, company.developer) == 0


def wait_for_capture(stack: Stack, key: str, company: Company, person: Person) -> None:
    """Request completions with the user's key until the worker has stored content of the user.

    Gateways learn of the consent within a second, and then send content to the worker.
    """

    def complete_and_check_capture() -> bool:
        complete(stack, key)
        return num_captured(company, person) > 0

    wait_until(complete_and_check_capture, timeout_s=_MAX_WORKER_S)


def num_captured(company: Company, person: Person) -> int:
    with tenant_scope(company.tenant_id):
        objects = ContentObject.objects.filter(tenant_id=company.tenant_id, user_id=person.user_id)
        return objects.count()


def check_withdrawal(page: Page, email: str) -> None:
    page.goto("/privacy/withdrawals")
    row = page.get_by_role("row").filter(has_text=email)
    expect(row).to_contain_text("Consent withdrawn")
    expect(row).not_to_contain_text("In progress")


def open_certificate(page: Page) -> None:
    page.goto("/retention/certificates")
    page.get_by_role("link", name="1", exact=True).click()


def verify_on_page(page: Page, file: Path) -> str:
    page.goto("/retention/verify")
    page.get_by_label("Certificate or data export").set_input_files(file)
    page.get_by_role("button", name="Verify").click()
    return page.get_by_role("alert").inner_text()
