"""Browsers that sign in with software passkeys."""

import json
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.console_client import Client
from tests.fakes.passkey import SoftPasskey
from tests.fixtures.companies import PASSWORD, Person

_CHALLENGE = re.compile(r'<script id="passkey-options" type="application/json">(.+?)</script>')


@dataclass
class Browser:
    """A user's browser with its own address, because attempts are counted by address."""

    person: Person
    client: Client = field(
        default_factory=lambda: Client(
            HTTP_HOST="localhost",  # passkeys are bound to the host name
            REMOTE_ADDR=f"10.{'.'.join(str(secrets.randbelow(250) + 1) for _ in range(3))}",
        )
    )

    def sign_in(self) -> str:
        """Sign in and return the page to which it leads."""
        form = {"email": self.person.email, "password": PASSWORD}
        return str(self.client.post("/sign-in", form)["Location"])

    def is_signed_in(self) -> bool:
        return self.client.get("/api/v1/tenant").status_code == 200

    def confirm(self) -> None:
        """Step up with the password. Adding a passkey requires a step-up."""
        self.client.get("/account/passkeys/new")
        self.client.post("/account/confirm", {"password": PASSWORD})

    def add(self, passkey: SoftPasskey, name: str = "Laptop") -> Any:
        """Step up, add the passkey to the account, and return the HTTP response."""
        self.confirm()
        challenge = read_challenge(self.client.get("/account/passkeys/new"))
        form = {"name": name, "credential": json.dumps(passkey.create(challenge))}
        return self.client.post("/account/passkeys/new", form)

    def request_challenge(self, **fields: str) -> dict[str, Any]:
        """Return the challenge for a passkey sign-in."""
        return read_challenge(self.client.post("/sign-in/passkey", fields))

    def post_response(self, credential: object, **fields: str) -> Any:
        """Send the passkey's response to the sign-in page, and return the HTTP response."""
        form = {"credential": json.dumps(credential), **fields}
        return self.client.post("/sign-in/passkey", form)


def read_challenge(response: Any) -> dict[str, Any]:
    match = _CHALLENGE.search(response.content.decode())
    assert match is not None, response.content
    challenge: dict[str, Any] = json.loads(match[1])
    return challenge
