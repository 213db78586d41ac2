"""Fixtures for the tests of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.fakes.console_client import Client
    from tests.fixtures.companies import Person
    from tests.integration.console.conftest import SignIn


@pytest.fixture
def sign_in_with_step_up(sign_in: SignIn) -> SignIn:
    """Return a function that signs a user in, and simulates a step-up (see with_recent_step_up).

    Pages for sensitive changes then do not ask for the password again.
    """

    def signed_in(person: Person) -> Client:
        from tests.integration.console.pages.step_up import with_recent_step_up

        return with_recent_step_up(sign_in(person), person)

    return signed_in
