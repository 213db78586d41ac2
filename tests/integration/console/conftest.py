from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from tests.fakes.console_client import Client
from tests.stack.schemathesis_plugin import pytest_configure as pytest_configure

if TYPE_CHECKING:
    from tests.fixtures.companies import Person


class SignIn(Protocol):
    def __call__(self, person: Person) -> Client: ...


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """All of these tests reach Postgres and Valkey."""


@pytest.fixture
def sign_in() -> SignIn:
    """A browser in which somebody is signed in; the sign-in page has tests of its own."""

    def signed_in(person: Person) -> Client:
        from tenants.models import User

        client = Client()
        client.force_login(User.objects.get(id=person.user_id))
        return client

    return signed_in
