"""Links to set a new password. Each works once, for one hour, for one account.

Nothing is stored. The link's token is an HMAC of the time and of the account's password hash and
e-mail address (Django's PasswordResetTokenGenerator), so it becomes invalid when one of these
changes. Unlike Django's, it does not contain the last sign-in: a thief of the password could
otherwise sign in again and again to invalidate the owner's links.
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
    user_id: uuid.UUID
    token: str = field(repr=False)

    @classmethod
    def for_user(cls, user: User) -> Self:
        return cls(user.id, _TOKENS.make_token(user))

    @property
    def url(self) -> str:
        return f"{settings.CONSOLE_URL}/reset-password/{self.user_id}/{self.token}"

    def is_valid_for(self, user: User) -> bool:
        return user.is_active and _TOKENS.check_token(user, self.token)
