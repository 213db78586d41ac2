"""Links to set a new password. Each works once, for one hour, for one account.

Nothing is stored. The link's token is an HMAC of the time and of the account's password hash,
e-mail address and last sign-in (Django's PasswordResetTokenGenerator), so it becomes invalid when
one of these changes.
"""

import uuid
from dataclasses import dataclass, field
from typing import Final, Self

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator

from tenants.models import User


class _TokenGenerator(PasswordResetTokenGenerator):
    key_salt = "caret.password-reset/1"


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
