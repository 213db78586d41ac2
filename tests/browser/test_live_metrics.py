"""The live figures of a page in the browser, after its session has ended."""

from typing import Final

from django.utils import timezone
from playwright.sync_api import WebSocket, expect

from tenants.identity.member_lifecycle import remove_member
from tests.browser.sessions import session_of
from tests.browser.tabs import Tabs
from tests.fixtures.companies import ACME_PEOPLE, make_company

_TIMEOUT_MS: Final = 60_000
# The page waits for a second before it reconnects for the first time (live_metrics.js).
_LONGER_THAN_FIRST_WAIT_MS: Final = 2_000


def test_a_page_whose_session_ends_shows_a_message_and_does_not_reconnect(tabs: Tabs) -> None:
    company = make_company("initech", ACME_PEOPLE)
    person = company.administrator
    page = tabs.open(session_of(person))
    sockets: list[WebSocket] = []
    page.on("websocket", lambda socket: sockets.append(socket))
    page.goto("/performance")
    expect(page.locator(".live.is-live")).to_be_visible(timeout=_TIMEOUT_MS)

    remove_member(actor=company.platform, user_id=person.user_id, reason="left", now=timezone.now())

    text = "disconnected: reload the page"
    expect(page.locator("[data-live-state]")).to_have_text(text, timeout=_TIMEOUT_MS)
    page.wait_for_timeout(_LONGER_THAN_FIRST_WAIT_MS)
    assert len(sockets) == 1
