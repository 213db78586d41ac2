"""Accounts of operators, and their browsers."""

import base64
import secrets
import time
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from django.http import HttpRequest
from django.utils import timezone

from console.operator_admin import session
from console.sign_in.sessions.session_store import SessionStore
from tenants.base.operator_roles import OperatorRole
from tenants.fleet.operators import totp
from tenants.fleet.operators.accounts import (
    Credentials,
    OperatorView,
    create_operator,
    list_operators,
)
from tests.fakes.console_client import Client
from tests.fixtures.companies import Company

OPERATOR_SESSION_COOKIE: Final = "caret-operator"
VIEW_REASON: Final = "Ticket 4711"
CHANGE_REASON: Final = "Ticket 4712"


@dataclass(frozen=True, slots=True)
class Account:
    handle: str
    credentials: Credentials

    def code(self, *, later_by: int = 0) -> str:
        """Return the current code, or the code `later_by` time steps (30 s each) later.

        A code works once. After the current code was used, a test needs the next one.
        """
        query = parse_qs(urlsplit(self.credentials.totp_uri).query)
        secret = base64.b32decode(query["secret"][0])
        return totp.compute_code(secret, int(time.time()) // totp.STEP_S + later_by)

    def form(self, **fields: str) -> dict[str, str]:
        """Return the form of the sign-in page."""
        password = self.credentials.password
        return {"handle": self.handle, "password": password, "code": self.code()} | fields


def make_account(role: OperatorRole = OperatorRole.ADMIN) -> Account:
    handle = f"ola{secrets.token_hex(6)}"
    credentials = create_operator(handle=handle, name="Ola Nordmann", role=role, now=timezone.now())
    return Account(handle, credentials)


@dataclass(frozen=True, slots=True)
class Browser:
    client: Client

    def sign_in(self, form: dict[str, str]) -> Any:
        return self.client.post("/operators/sign-in", form)

    def session(self) -> SessionStore:
        """Return the stored session."""
        return SessionStore.from_token(self.client.cookies[OPERATOR_SESSION_COOKIE].value)

    def is_signed_in(self) -> bool:
        return self.client.get("/operators/").status_code == 200

    def page(self, company: Company) -> Any:
        return self.client.get(f"/operators/tenants/{company.tenant_id}")

    def open_tenant(self, company: Company, reason: str = VIEW_REASON) -> Any:
        """Give the reason for viewing the tenant, and open its page."""
        address = f"/operators/tenants/{company.tenant_id}/reason"
        return self.client.post(address, {"reason": reason}, follow=True)

    def step_up(self) -> None:
        """Simulate a step-up: the operator has just entered a code of the authenticator app."""
        stored_session = self.session()
        stored_session["confirmed_until"] = time.time() + session.CONFIRMED_S
        stored_session.save()

    def change(self, company: Company, action: str, **form: str) -> Any:
        address = f"/operators/tenants/{company.tenant_id}/edit/{action}"
        return self.client.post(address, {"reason": CHANGE_REASON} | form)

    def invite_owner(self, company: Company, email: str) -> Any:
        return self.client.post(f"/operators/tenants/{company.tenant_id}/owners", {"email": email})


def new_browser() -> Browser:
    """Return a browser at an IP address of its own.

    Wrong passwords are counted by IP address, too, and must not throttle other tests.
    """
    octets = ".".join(str(secrets.randbelow(250) + 1) for _ in range(3))
    return Browser(Client(REMOTE_ADDR=f"10.{octets}"))


def signed_in(role: OperatorRole = OperatorRole.ADMIN) -> Browser:
    """Return a browser whose operator has signed in. All tests share one operator of each role.

    This function does not use the sign-in page, which has its own tests and takes a second.
    """
    browser, request = new_browser(), HttpRequest()
    store = SessionStore()
    request.session = store
    session.start_session(request, _make_operator(role))
    store.save()
    browser.client.cookies[OPERATOR_SESSION_COOKIE] = store.token
    return browser


@cache
def _make_operator(role: OperatorRole) -> OperatorView:
    handle = make_account(role).handle
    return next(operator for operator in list_operators() if operator.handle == handle)


def with_recent_step_up(browser: Browser | None = None) -> Browser:
    """Return a browser whose operator has just entered a code of the authenticator app."""
    browser = browser or signed_in()
    browser.step_up()
    return browser
