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
from tests.browser.end_to_end.gateway import complete, make_known_key
from tests.browser.end_to_end.offline import change_middle_byte, download_file, run_verifier
from tests.browser.end_to_end.worker import run_now
from tests.browser.sessions import session_of
from tests.browser.tabs import Tabs
from tests.fixtures.companies import ACME, Company, make_company
from tests.stack.running import Stack
from tests.stack.waiting import wait_until

pytestmark = [pytest.mark.engine, pytest.mark.deep]  # long
_MAX_WORKER_S = 240.0
_VALID_SIGNATURE = "the signature is valid"


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME)


def test_withdrawing_consent_erases_captured_content_and_leaves_a_certificate(
    tabs: Tabs, stack: Stack, company: Company, tmp_path: Path
) -> None:
    key = make_known_key(stack, company)
    allow_content_capture(tabs.open(session_of(company.people[Role.OWNER])))
    developers_page = tabs.open(session_of(company.developer))
    give_consent(developers_page)
    wait_until(lambda: complete_and_check_capture(stack, key, company), timeout_s=_MAX_WORKER_S)
    withdraw_consent(developers_page)
    run_now("tenants.privacy.tasks.clean_up_content")
    wait_until(lambda: num_captured(company) == 0, timeout_s=_MAX_WORKER_S)
    # This completion has no consent. The last line checks that nothing of it is stored.
    complete(stack, key)

    auditors_page = tabs.open(session_of(company.people[Role.AUDITOR]))
    check_withdrawal(auditors_page, company.developer.email)
    open_certificate(auditors_page)
    expect(auditors_page.get_by_role("status")).to_contain_text(_VALID_SIGNATURE)
    assert find_violations(auditors_page) == []
    file = download_file(auditors_page, "link", "Download", tmp_path)
    public_keys = download_file(auditors_page, "link", "public keys", tmp_path)

    assert run_verifier("verify_certificate", file, public_keys).startswith("OK")
    change_middle_byte(file)
    assert run_verifier("verify_certificate", file, public_keys).startswith("BROKEN")
    assert "verification failed" in verify_on_page(auditors_page, file)
    assert num_captured(company) == 0


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


def complete_and_check_capture(stack: Stack, key: str, company: Company) -> bool:
    """Request a completion, and return True if the worker has stored content of any completion.

    Gateways learn of the consent within a second, and then send content to the worker.
    """
    complete(stack, key)
    return num_captured(company) > 0


def num_captured(company: Company) -> int:
    with tenant_scope(company.tenant_id):
        return ContentObject.objects.filter(tenant_id=company.tenant_id).count()


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
