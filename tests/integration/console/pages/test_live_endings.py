"""The WebSocket of live figures closes when the session ends or the user's access changes.

It closes because of a notification, or at the next periodic check if Redis is unreachable.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client, override_settings
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from console.live_metrics import consumer as live
from console.sign_in.sessions.session_store import SessionStore
from tenants.base.permissions import Role
from tenants.identity.member_lifecycle import change_role, remove_member
from tenants.identity.members.sessions import end_sessions_of_domains
from tenants.identity.members.tenant_status import set_status
from tenants.identity.passwords.operations import set_password
from tenants.models import User
from tests.fixtures.companies import ACME_PEOPLE, Company, Person, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.live_socket import read_first_message, session_key_of, socket
from tests.integration.sign_in.browser import new_browser


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def _sign_out(session: str, _person: Person) -> None:
    SessionStore.from_token(session).delete()


def _deactivate_user(_session: str, person: Person) -> None:
    User.objects.filter(id=person.user_id).update(is_active=False)


@pytest.mark.parametrize("end_session", [_sign_out, _deactivate_user])
def test_a_socket_closes_when_its_session_ends(
    company: Company,
    sign_in: SignIn,
    monkeypatch: pytest.MonkeyPatch,
    end_session: Callable[[str, Person], None],
) -> None:
    """Redis is unreachable, so only the periodic check can find that the session has ended."""
    monkeypatch.setattr(live, "CHECK_EVERY_S", 0.1)
    person = company.administrator
    session = session_key_of(sign_in(person))

    with override_settings(REDIS_URL="unix:///nonexistent/valkey.sock"):
        close_event = asyncio.run(close_after(session, lambda: end_session(session, person)))

    assert close_event == {"type": "websocket.close", "code": live.ENDED}


async def close_after(session: str, change: Callable[[], object]) -> dict[str, Any]:
    """Open a socket and make the change. Return the socket's last event."""
    async with socket(session) as opened_socket:
        await read_first_message(opened_socket)
        # After the second message, the socket's initial checks are over.
        await opened_socket.next()
        await sync_to_async(change)()
        async with asyncio.timeout(300):
            while (event := await opened_socket.next())["type"] == "websocket.send":
                pass
        return event


def _sign_out_by_the_page(company: Company, client: Client) -> None:
    assert client.post("/sign-out").status_code == 302


def _end_all_other_sessions(company: Company, _client: Client) -> None:
    other_browser = new_browser(company.administrator)
    assert other_browser.sign_in() == "/"
    assert other_browser.client.post("/account/sessions").status_code == 302


def _remove_member(company: Company, _client: Client) -> None:
    person = company.administrator
    remove_member(actor=company.platform, user_id=person.user_id, reason="left", now=timezone.now())


def _make_a_developer(company: Company, _client: Client) -> None:
    change_role(
        actor=company.platform,
        user_id=company.administrator.user_id,
        role=Role.DEVELOPER,
        reason="moved",
        now=timezone.now(),
    )


def _suspend_tenant(company: Company, _client: Client) -> None:
    suspended = TenantStatus.SUSPENDED
    set_status(actor=company.platform, status=suspended, reason="unpaid", now=timezone.now())


def _change_the_password(company: Company, _client: Client) -> None:
    set_password(user_id=company.administrator.user_id, password="a new long password")


def _change_the_provider(company: Company, _client: Client) -> None:
    """End the sessions of a domain, as a change of its identity provider does."""
    end_sessions_of_domains(
        domains=[company.administrator.email.partition("@")[2]], exempt_session_key=None
    )


@pytest.mark.parametrize(
    "change",
    [
        _sign_out_by_the_page,
        _end_all_other_sessions,
        _remove_member,
        _make_a_developer,
        _suspend_tenant,
        _change_the_password,
        _change_the_provider,
    ],
)
def test_a_change_that_ends_a_socket_closes_it_without_a_periodic_check(
    company: Company, monkeypatch: pytest.MonkeyPatch, change: Callable[[Company, Client], None]
) -> None:
    assert live._PAUSE_S < 1, "a notification takes effect within a second"
    monkeypatch.setattr(live, "CHECK_EVERY_S", 3600.0)
    browser = new_browser(company.administrator)
    assert browser.sign_in() == "/"  # the path of the page after the sign-in
    client = browser.client

    close_event = asyncio.run(close_after(session_key_of(client), lambda: change(company, client)))

    assert close_event == {"type": "websocket.close", "code": live.ENDED}


def test_signing_out_closes_no_socket_of_another_user(company: Company, sign_in: SignIn) -> None:
    client, other_client = sign_in(company.administrator), sign_in(company.developer)

    async def receive_types() -> list[str]:
        async with socket(session_key_of(other_client)) as opened_socket:
            await read_first_message(opened_socket)
            await sync_to_async(client.post)("/sign-out")
            return [(await opened_socket.next())["type"] for _ in range(2)]

    # The socket gets further figures, and no "websocket.close".
    assert asyncio.run(receive_types()) == ["websocket.send"] * 2
