"""Links to set a new password. Each link works once, for one hour, for one account.

Nothing is stored. The link's token contains the time and an HMAC (Django's
PasswordResetTokenGenerator). The HMAC covers the time, the account's password hash and its e-mail
address, so a link becomes invalid when the password or the address changes. Django's own tokens
also become invalid when the user signs in. These tokens do not: a thief of the password could
otherwise invalidate the user's links by signing in repeatedly.
"""

import uuid
from dataclasses import dataclass, field
from typing import Final, Self

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.tokens import PasswordResetTokenGenerator

from tenants.models import User


class _TokenGenerator(PasswordResetTokenGenerator):
    key_salt = "caret.password-reset/1"

    def _make_hash_value(self, user: AbstractBaseUser, timestamp: int) -> str:
        assert isinstance(user, User)
        return f"{user.pk}{user.password}{timestamp}{user.email}"


_TOKENS: Final = _TokenGenerator()


@dataclass(frozen=True, slots=True)
class ResetLink:
    """A link as it was created or presented. `is_valid_for` checks it."""

    user_id: uuid.UUID
    token: str = field(repr=False)

    @classmethod
    def for_user(cls, user: User) -> Self:
        return cls(user.id, _TOKENS.make_token(user))

    @property
    def url(self) -> str:
        return f"{settings.CONSOLE_URL}/reset-password/{self.user_id}/{self.token}"

    def is_valid_for(self, user: User) -> bool:
        """Return whether the token is valid for the user, who must be active."""
        return user.is_active and _TOKENS.check_token(user, self.token)
