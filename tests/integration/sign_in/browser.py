"""Browsers that sign in with a password."""

import secrets
import time
from dataclasses import dataclass

from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value

from tests.fakes.console_client import Client
from tests.fixtures.companies import PASSWORD, Person


@dataclass
class Browser:
    client: Client
    person: Person

    def sign_in(self) -> str:
        """Sign in, and return the page to which it leads, or the status if it leads to none."""
        form = {"email": self.person.email, "password": PASSWORD}
        response = self.client.post("/sign-in", form)
        return response["Location"] if response.status_code == 302 else str(response.status_code)

    def is_signed_in(self) -> bool:
        """Return whether the session has access to the tenant.

        It has none while a required second factor is missing.
        """
        return self.client.get("/api/v1/tenant").status_code == 200

    def set_up_app(self) -> str:
        """Set up an authenticator app after a step-up by password, and return its secret."""
        self.client.get("/account/second-factor/app")
        self.client.post("/account/confirm", {"password": PASSWORD})
        page = self.client.get("/account/second-factor/app")
        secret = str(page.context["form"].secret)
        response = self.client.post("/account/second-factor/app", {"code": code_of(secret)})
        assert response.status_code == 302, response.content
        return secret


def code_of(secret: str, *, later_by: int = 0) -> str:
    """Return the current code, or the code `later_by` time steps (30 s each) later.

    A code works once. After the current code was used, a test needs the next one.
    """
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30 + later_by)))


def new_browser(person: Person) -> Browser:
    """Return a browser with its own IP address, because attempts are counted by IP address."""
    octets = ".".join(str(secrets.randbelow(250) + 1) for _ in range(3))
    return Browser(Client(REMOTE_ADDR=f"10.{octets}"), person)
