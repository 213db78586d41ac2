"""Requirements for new passwords of users.

settings.AUTH_PASSWORD_VALIDATORS lists them. A password must have a minimum length. It must not be
on Django's list of common passwords, not be similar to the user's name or e-mail address, and not
consist of digits only.
"""

from collections.abc import Iterator
from typing import Any, Final

from django.contrib.auth.password_validation import CommonPasswordValidator, validate_password
from django.core.exceptions import ValidationError
from django.utils.translation import gettext

from tenants.base.errors import InvalidValue
from tenants.base.validation.text import is_storable
from tenants.models import User

MAX_PASSWORD_CHARS: Final = 256


class LeakedPasswordValidator(CommonPasswordValidator):
    """Rejects the passwords of Django's list, also with padding at both ends.

    The list has the 20,000 most frequent passwords of data leaks. Most of them are shorter than the
    required 12 characters, so users pad them with digits and punctuation. For example, `password`
    is on the list, so `Password2026!` is rejected, too.
    """

    def validate(self, password: str, user: Any = None) -> None:
        super().validate(password, user)
        if any(text in self.passwords for text in _iterate_without_padding(password.lower())):
            raise ValidationError(self.get_error_message(), code="password_too_common")

    def get_error_message(self) -> str:
        return gettext(
            "This password is easy to guess: it contains little more than a password from a list "
            "of leaked ones. Choose another."
        )


def set_valid_password(user: User, password: str) -> None:
    """Set a user's password if it meets the requirements. The caller saves the row.

    Raises InvalidValue.
    """
    if len(password) > MAX_PASSWORD_CHARS:
        raise InvalidValue(
            "password", "Use a password of at most {most} characters.", most=MAX_PASSWORD_CHARS
        )
    if not is_storable(password):
        raise InvalidValue("password", "This password contains characters that are not allowed.")
    try:
        validate_password(password, user)
    except ValidationError as error:
        message = " ".join(error.messages)
        raise InvalidValue("password", message) from error
    user.set_password(password)


def _iterate_without_padding(text: str) -> Iterator[str]:
    """Yield the text with each amount of padding removed at its start and at its end.

    The padding is all characters before the first letter and after the last one. Some of them may
    belong to a listed password, as the digit of `trustno1` does, so the text is also yielded with
    only a part of its padding removed. Yields nothing if the text has no letter.
    """
    letters = [index for index, char in enumerate(text) if char.isalpha()]
    if not letters:
        return
    for start in range(letters[0] + 1):
        for end in range(letters[-1] + 1, len(text) + 1):
            yield text[start:end]
