"""What the tests of pages have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.fakes.console_client import Client
    from tests.fixtures.companies import Person
    from tests.integration.console.conftest import SignIn


@pytest.fixture
def sign_in_now(sign_in: SignIn) -> SignIn:
    """Signed in a moment ago: what destroys asks for no more."""

    def signed_in(person: Person) -> Client:
        from tests.integration.console.pages.step_up import confirmed

        return confirmed(sign_in(person), person)

    return signed_in
