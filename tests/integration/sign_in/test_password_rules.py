"""The rules for new passwords."""

import secrets

import pytest
from django.utils import timezone

from tenants.base.errors import InvalidValue
from tenants.identity.members.operations import create_user
from tests.fixtures.companies import PASSWORD
from tests.integration.sign_in.passwords import NEW_PASSWORD


@pytest.mark.parametrize(
    ("password", "message"),
    [
        ("elevenchars", "at least 12 characters"),
        ("qwerty123456", "easy to guess"),  # in the list of common passwords
        ("Password2026!", "easy to guess"),  # a common password with digits and a sign
        ("!!Iloveyou2026!!", "easy to guess"),
        ("trustno1!!!!", "easy to guess"),  # the digit belongs to the common password
        ("2026Trustno12026!", "easy to guess"),
        ("482910385728", "entirely numeric"),
        ("gertrude.steinway", "too similar"),  # the user's own name
        ("x" * 257, "at most 256 characters"),
        ("a fine one but\0", "not allowed"),
    ],
)
def test_a_weak_password_is_refused_for_a_new_account(password: str, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        create_user(
            email=f"{secrets.token_hex(4)}@x.example",
            name="Gertrude Steinway",
            password=password,
            now=timezone.now(),
        )


@pytest.mark.parametrize(
    "password", [PASSWORD, NEW_PASSWORD, "8f!kQz2#mW9x", "Zwölf Boxkämpfer jagen"]
)
def test_a_good_password_is_accepted(password: str) -> None:
    assert create_user(
        email=f"{secrets.token_hex(4)}@x.example",
        name="Gertrude Steinway",
        password=password,
        now=timezone.now(),
    )
