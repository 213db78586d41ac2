"""django-allauth's forms for second-factor codes, changed to accept each code only once.

Each code of an authenticator app belongs to a time step of 30 s. It is also valid for
MFA_TOTP_TOLERANCE steps before and after its own. But django-allauth remembers a used code for only
one step.
"""

from typing import Final

from allauth.core.internal.cryptokit import normalize_user_code
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from django.conf import settings
from django.core.cache import cache

_STEP_S: Final = 30  # the default of django-allauth's MFA_TOTP_PERIOD
_VALID_S: Final = (2 * settings.MFA_TOTP_TOLERANCE + 1) * _STEP_S  # how long a code is valid


class _SingleUseCodeMixin:
    def clean_code(self) -> str:
        """Return the code and mark it as used. Raises ValidationError if it is wrong or used."""
        code: str = super().clean_code()  # type: ignore[misc]  # the method of allauth's form
        user_id = self.user.pk  # type: ignore[attr-defined]
        cache_key = f"second-factor-code/{user_id}/{normalize_user_code(code)}"
        if not cache.add(cache_key, "used", timeout=_VALID_S):
            raise get_adapter().validation_error("incorrect_code")
        return code


class SingleUseCodeForm(_SingleUseCodeMixin, AuthenticateForm):  # type: ignore[misc]  # allauth has no types
    """The form of the second step of a sign-in."""


class SingleUseCodeStepUpForm(_SingleUseCodeMixin, ReauthenticateForm):  # type: ignore[misc]  # allauth has no types
    """The form of a step-up, when the user is already signed in."""
