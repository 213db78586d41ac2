"""Fixtures for a sign-in by the device flow: a company, a user's browser and an editor."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.fakes.console_client import Client
    from tests.fixtures.companies import Company, Person
    from tests.integration.console.conftest import SignIn
    from tests.integration.console.device_flow.editor import Editor


@pytest.fixture
def company() -> Company:
    # Imported here: pytest may load this file before Django is set up.
    from tests.fixtures.companies import ACME_PEOPLE, make_company

    return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def sign_in(sign_in: SignIn) -> SignIn:
    """Return a function that signs a user in. Each call uses another IP address."""

    def signed_in(person: Person) -> Client:
        client = sign_in(person)
        client.defaults["REMOTE_ADDR"] = make_address()
        return client

    return signed_in


@pytest.fixture
def ada(company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Ada, the company's developer."""
    return sign_in(company.developer)


@pytest.fixture
def editor(monkeypatch: pytest.MonkeyPatch) -> Editor:
    # Imported here for the same reason as in `company`.
    from tests.integration.console.device_flow.editor import Editor

    return Editor(monkeypatch, address=make_address())


def make_address() -> str:
    """Return a random IP address. Attempts from an address are limited, so tests share none."""
    return "10." + ".".join(str(secrets.randbelow(250) + 1) for _ in range(3))
