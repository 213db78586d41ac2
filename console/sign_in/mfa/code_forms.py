"""django-allauth's forms for second-factor codes, which accept each code once.

django-allauth remembers a used code for only one time step of 30 s. But a code is also valid in
MFA_TOTP_TOLERANCE steps before and after its own.
"""

from typing import Final

from allauth.core.internal.cryptokit import normalize_user_code
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from django.conf import settings
from django.core.cache import cache

_STEP_S: Final = 30
_VALID_S: Final = (2 * settings.MFA_TOTP_TOLERANCE + 1) * _STEP_S


class _SingleUseCode:
    def clean_code(self) -> str:
        """Return the code, and mark it as used. Raises ValidationError."""
        code: str = super().clean_code()  # type: ignore[misc]  # the method of allauth's form
        user_id = self.user.pk  # type: ignore[attr-defined]
        key = f"second-factor-code/{user_id}/{normalize_user_code(code)}"
        if not cache.add(key, "used", timeout=_VALID_S):
            raise get_adapter().validation_error("incorrect_code")
        return code


class AuthenticateByFreshCode(_SingleUseCode, AuthenticateForm):  # type: ignore[misc]  # allauth has no types
    pass


class ReauthenticateByFreshCode(_SingleUseCode, ReauthenticateForm):  # type: ignore[misc]  # allauth has no types
    pass
