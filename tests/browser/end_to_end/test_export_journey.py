"""An export: requested, built by the worker, downloaded with its proof and verified.

Offline and on the page, verification detects a changed byte.
"""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tenants.base.permissions import Role
from tests.browser.axe import find_violations
from tests.browser.end_to_end.offline import change_middle_byte, download_file, run_verifier
from tests.browser.sessions import session_of
from tests.browser.tabs import Tabs
from tests.fixtures.companies import ACME_PEOPLE, make_company

pytestmark = pytest.mark.deep  # long

_MAX_BUILD_MS = 240_000  # 60 s were sometimes too short beside the other tests on two cores


@pytest.fixture
def page(tabs: Tabs) -> Page:
    """Open a tab of a new company's auditor."""
    return tabs.open(session_of(make_company("initech", ACME_PEOPLE).people[Role.AUDITOR]))


def test_an_export_is_verified_offline_and_on_the_page(page: Page, tmp_path: Path) -> None:
    request_members_export(page)
    file = download_file(page, "button", "Download", tmp_path)
    proof = download_file(page, "link", "Proof", tmp_path)
    public_keys = download_file(page, "link", "Public keys", tmp_path)
    output = run_verifier("verify_export", file, public_keys)
    verify_on_page(page, file, proof)

    assert output.startswith(f"OK: members version 1, {len(ACME_PEOPLE)} rows")
    expect(page.get_by_role("status")).to_contain_text("the signature is valid")
    assert find_violations(page) == []


def test_a_changed_byte_is_detected_offline_and_on_the_page(page: Page, tmp_path: Path) -> None:
    request_members_export(page)
    file = download_file(page, "button", "Download", tmp_path)
    proof = download_file(page, "link", "Proof", tmp_path)
    public_keys = download_file(page, "link", "Public keys", tmp_path)
    change_middle_byte(file)

    output = run_verifier("verify_export", file, public_keys)
    verify_on_page(page, file, proof)

    assert output.startswith("BROKEN: the data: it was changed")
    expect(page.get_by_role("alert")).to_contain_text("the data: it was changed")


def request_members_export(page: Page) -> None:
    """Request an export, wait on the list until it is ready, and open it."""
    page.goto("/exports")
    page.get_by_role("link", name="New export").first.click()
    page.get_by_label("Data").select_option("members")
    page.get_by_label("CSV", exact=True).check()
    page.get_by_role("button", name="Create export").click()
    expect(page.get_by_role("button", name="Download")).to_be_visible(timeout=_MAX_BUILD_MS)
    page.locator("#exports th a").click()


def verify_on_page(page: Page, file: Path, proof: Path) -> None:
    page.get_by_role("link", name="Or verify it here").click()
    page.get_by_label("Export").set_input_files(file)
    page.get_by_label("Proof").set_input_files(proof)
    page.get_by_role("button", name="Verify").click()
