"""A budget is created, exhausted and raised.

Completions stop when it is exhausted. No editor shows an error, and a chat user sees a message.
"""

import pytest
from playwright.sync_api import Page, expect

from tenants.base.permissions import Role
from tests.browser.axe import find_violations
from tests.browser.end_to_end.gateway import (
    MAX_SYNC_S,
    complete,
    error_code_of,
    make_known_key,
    num_generated_tokens,
    request_chat,
)
from tests.browser.sessions import session_of
from tests.browser.tabs import Tabs
from tests.fakes.billing import make_customer
from tests.fixtures.companies import Company, make_company
from tests.stack.running import Stack
from tests.stack.waiting import wait_until

pytestmark = [pytest.mark.engine, pytest.mark.deep]  # long
# A request reserves its maximum cost, at the prices of tests.fakes.billing. That is some 0.0003 for
# a completion (2,000 prompt tokens and 4 generated tokens), so the first limit admits a few. It is
# some 0.006 for a chat request, so the first limit admits none.
_LIMIT, _RAISED_LIMIT = "0.001", "50"
_LONG_PROMPT = {"prompt": "value = value + 1\n" * 400, "suffix": "\n"}
# Usage is rated every 15 s, after its ingestion. The worker shares two cores with all other tests.
_RATED_S = 240.0


@pytest.fixture
def company() -> Company:
    company = make_company("initech", {Role.OWNER: "olga", Role.DEVELOPER: "dan"})
    make_customer(company)
    return company


def test_completions_stop_at_a_budget_and_resume_after_it_is_raised(
    tabs: Tabs, stack: Stack, company: Company
) -> None:
    key = make_known_key(stack, company)
    page = tabs.open(session_of(company.people[Role.OWNER]))

    make_budget(page, _LIMIT)
    wait_until(lambda: has_stopped(stack, key), timeout_s=MAX_SYNC_S)
    stopped, chat_response = complete(stack, key), request_chat(stack, key)
    check_exhausted(page)
    assert find_violations(page) == []
    raise_budget(page, _RAISED_LIMIT)

    wait_until(lambda: num_generated_tokens(complete(stack, key)) > 0, timeout_s=MAX_SYNC_S)
    assert (stopped.status_code, stopped.json()["choices"][0]["text"]) == (200, "")
    assert (chat_response.status_code, error_code_of(chat_response)) == (402, "budget_exceeded")


def has_stopped(stack: Stack, key: str) -> bool:
    """Spend some of the budget. Return True if the rest is too small for a completion and for chat.

    A completion can also be empty for another reason, such as load, so the reason is compared.
    """
    complete(stack, key, **_LONG_PROMPT)
    reason: str | None = complete(stack, key).headers.get("X-Caret-Finish-Reason")
    return reason == "budget_exceeded" and error_code_of(request_chat(stack, key)) == reason


def make_budget(page: Page, limit: str) -> None:
    page.goto("/budgets")
    page.get_by_role("link", name="New budget").first.click()
    page.get_by_label("Monthly limit").fill(limit)
    page.get_by_role("button", name="Create budget").click()
    expect(page.get_by_text("Budget created. It applies immediately.")).to_be_visible()


def check_exhausted(page: Page) -> None:
    """Check that all thresholds of the budget are reached, and that completions have stopped."""

    def has_reached_all_thresholds() -> bool:
        page.reload()
        return "Not reached" not in page.locator(".thresholds").inner_text()

    wait_until(has_reached_all_thresholds, timeout_s=_RATED_S)
    expect(page.get_by_text("Completions stopped", exact=True)).to_be_visible()


def raise_budget(page: Page, limit: str) -> None:
    page.get_by_label("Monthly limit").fill(limit)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Budget saved. It applies immediately.")).to_be_visible()
