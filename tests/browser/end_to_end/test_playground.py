"""The playground with a real gateway and engine: suggestions, accepting, metrics and
explanations."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.identity.api_keys.queries import KeyState, list_keys
from tenants.models import Outcome, UsageRecord
from tests.browser.end_to_end.playground import (
    GHOST,
    TYPED_TEXT,
    start_playground,
    wait_for_suggestion,
)
from tests.browser.sessions import session_of
from tests.browser.tabs import DESKTOP, PHONE, Look, Tabs
from tests.fixtures.companies import Company, make_company
from tests.stack.waiting import wait_until

pytestmark = pytest.mark.engine
_KEY_PREFIX = "cpk_test_"  # of the playground's keys
_INGESTED_S = 180.0  # until an outcome or a change is in the database


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.ADMINISTRATOR: "ann", Role.DEVELOPER: "dan"})


def open_playground(tabs: Tabs, company: Company, look: Look = DESKTOP) -> Page:
    page = tabs.open(session_of(company.developer), look)
    page.goto("/playground")
    start_playground(tabs, page)
    return page


def list_outcomes(company: Company) -> list[str]:
    with tenant_scope(company.tenant_id):
        return list(Outcome.objects.order_by("occurred_at").values_list("event", flat=True))


def test_tab_accepts_a_suggestion_and_the_outcome_is_recorded(tabs: Tabs, company: Company) -> None:
    page = open_playground(tabs, company)

    text = wait_for_suggestion(page)
    page.keyboard.press("Tab")

    expect(page.locator(".cm-content")).to_contain_text(TYPED_TEXT + text)
    expect(page.locator(GHOST)).to_have_count(0)
    wait_until(lambda: list_outcomes(company) == ["shown", "accepted"], timeout_s=_INGESTED_S)
    with tenant_scope(company.tenant_id):
        record = UsageRecord.objects.get()
    assert (record.protocol, record.mode, record.language) == ("stream", "inline", "python")
    assert str(record.user_id) == company.developer.user_id
    assert record.generated_tokens > 0


def test_escape_rejects_a_suggestion_and_lets_tab_leave_the_editor(
    tabs: Tabs, company: Company
) -> None:
    page = open_playground(tabs, company)

    wait_for_suggestion(page)
    page.keyboard.press("Escape")
    expect(page.locator(GHOST)).to_have_count(0)
    page.keyboard.press("Tab")

    expect(page.locator(".cm-content")).not_to_be_focused()
    typed_line = page.locator(".cm-line").get_by_text(TYPED_TEXT.strip(), exact=True)
    expect(typed_line).to_have_count(1)  # without the suggestion
    wait_until(lambda: list_outcomes(company) == ["shown", "rejected"], timeout_s=_INGESTED_S)


def test_a_button_accepts_a_suggestion_on_a_phone(tabs: Tabs, company: Company) -> None:
    page = open_playground(tabs, company, PHONE)

    text = wait_for_suggestion(page)
    page.get_by_role("button", name="Accept").click()

    expect(page.locator(".cm-content")).to_contain_text(TYPED_TEXT + text)
    expect(page.get_by_role("button", name="Accept")).to_be_hidden()


def test_a_request_shows_its_numbers_and_its_prompt(tabs: Tabs, company: Company) -> None:
    page = open_playground(tabs, company)

    wait_for_suggestion(page)

    expect(page.locator("#play-outcome")).to_contain_text("Shown")
    for number in ("first_token_ms", "total_ms", "prompt_tokens", "generated_tokens"):
        expect(page.locator(f"[data-number={number}]")).to_have_text(re.compile(r"^\d"))
    legend = page.locator("#play-legend")
    for kind in ("Other files", "FIM markers", "After the cursor", "Before the cursor"):
        expect(legend).to_contain_text(kind)
    expect(page.locator("#play-files")).to_have_text("The prompt contains 1 of 1 other files.")
    # One of each other kind, and several FIM markers.
    assert page.locator("#play-bar rect.segment").count() >= 5


def test_starting_in_another_tab_ends_the_first_session(tabs: Tabs, company: Company) -> None:
    older_page = open_playground(tabs, company)
    open_playground(tabs, company)

    older_page.get_by_role("button", name="Request now").click()

    expect(older_page.locator("#play-outcome")).to_contain_text("Rejected")
    expect(older_page.locator("#play-message")).to_have_text(
        "The key has expired. Select Start to continue."
    )
    expect(older_page.get_by_role("button", name="Start")).to_be_visible()
    # The second start has given the same key a new secret.
    assert list_key_states(company) == [KeyState.ACTIVE]


def test_leaving_the_page_expires_the_key(tabs: Tabs, company: Company) -> None:
    page = open_playground(tabs, company)
    assert list_key_states(company) == [KeyState.ACTIVE]

    page.goto("/")

    wait_until(lambda: list_key_states(company) == [KeyState.EXPIRED], timeout_s=_INGESTED_S)


def test_the_key_is_not_stored_in_the_browser(tabs: Tabs, company: Company) -> None:
    page = tabs.open(session_of(company.developer))
    page.goto("/playground")

    with page.expect_response("**/playground/start") as response:
        start_playground(tabs, page)

    assert response.value.json()["key"].startswith(_KEY_PREFIX)
    assert _KEY_PREFIX not in page.content()
    assert _KEY_PREFIX not in page.url
    storage = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert _KEY_PREFIX not in storage + page.evaluate("document.cookie")


def list_key_states(company: Company) -> list[KeyState]:
    actor = company.administrator.actor
    keys = list_keys(actor=actor, limit=100, cursor=None, now=timezone.now())
    return [key.state for key in keys.rows]
