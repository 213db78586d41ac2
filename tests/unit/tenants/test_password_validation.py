"""Passwords from the list of leaked ones are refused, also with padding at both ends."""

import pytest
from django.core.exceptions import ValidationError

from tenants.identity.members.password_validation import MAX_PASSWORD_CHARS, LeakedPasswordValidator

VALIDATOR = LeakedPasswordValidator()


# `password`, `trustno1` and `1q2w3e4r` are on the list; `trustno` is not.
@pytest.mark.parametrize(
    "password",
    ["password", "Password2026!", "trustno1", "Trustno1!!!!", "2026trustno12026!", "!!1q2w3e4r!!"],
)
def test_a_listed_password_with_padding_is_refused(password: str) -> None:
    with pytest.raises(ValidationError):
        VALIDATOR.validate(password)


@pytest.mark.parametrize("password", ["trustno!!!!!", "8f!kQz2#mW9x", "7!31&4#90?52"])
def test_other_passwords_with_padding_are_accepted(password: str) -> None:
    VALIDATOR.validate(password)


def test_long_padding_around_another_text_is_accepted() -> None:
    padding = "7" * (MAX_PASSWORD_CHARS // 2 - 1)

    VALIDATOR.validate(f"{padding}xy{padding}")
