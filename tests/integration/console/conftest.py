"""Fixtures for the tests of the console: the databases, and the sign-in of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from tests.fakes.console_client import Client

# A hook of pytest, which finds it in this file by its name.
from tests.stack.schemathesis_plugin import pytest_configure as pytest_configure

if TYPE_CHECKING:
    from tests.fixtures.companies import Person


class SignIn(Protocol):
    def __call__(self, person: Person) -> Client: ...


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all of these tests Postgres and Valkey."""


@pytest.fixture
def sign_in() -> SignIn:
    """Return a function that signs a user in without the sign-in page, which has its own tests."""

    def signed_in(person: Person) -> Client:
        # Imported here: pytest may load this file before Django is set up.
        from tenants.models import User

        client = Client()
        client.force_login(User.objects.get(id=person.user_id))
        return client

    return signed_in
