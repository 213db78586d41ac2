"""What browsers answer about passkeys, looked at before django-allauth takes it.

It believes an answer's form: what is none of the standard's shape would end in an error of ours,
and all that the browser sent would be stored. Here an answer is bounded, parsed, and reduced to
what is used.
"""

from collections.abc import Mapping
from typing import Any, Final

from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    EditWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from cryptography.exceptions import InvalidSignature
from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from fido2.cose import CoseKey
from fido2.webauthn import AuthenticationResponse, RegistrationResponse

MAX_PASSKEYS: Final = 20  # of one person
_MAX_ANSWER_CHARS: Final = 16_384  # they are of 1 to 3 thousand
_MAX_NAME_CHARS: Final = 60
_NOT_UNDERSTOOD: Final = _("Your browser sent an unexpected response. Try again.")
_NOT_A_PASSKEY: Final = _("This passkey does not belong to your account.")
# What the parts of a parser raise for bytes of another shape.
_MALFORMED: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError)


class _AnswerField(forms.JSONField):
    """A JSON object of bounded size. Raises ValidationError."""

    widget = forms.HiddenInput

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and len(value) > _MAX_ANSWER_CHARS:
            raise ValidationError(_NOT_UNDERSTOOD)
        try:
            answer = super().to_python(value)
        except (RecursionError, ValueError) as error:  # brackets in brackets, numbers without end
            raise ValidationError(_NOT_UNDERSTOOD) from error
        if answer is not None and not isinstance(answer, dict):
            raise ValidationError(_NOT_UNDERSTOOD)
        return answer


class AddPasskey(AddWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    name = forms.CharField(required=False, max_length=_MAX_NAME_CHARS)
    credential = _AnswerField()
    passwordless = None  # each may sign in alone that knows its user: nobody is asked

    def clean_credential(self) -> dict[str, Any]:
        owned = Authenticator.objects.filter(user=self.user, type=Authenticator.Type.WEBAUTHN)
        if owned.count() >= MAX_PASSKEYS:
            said = gettext("You already have %(most)s passkeys. Remove one first.")
            raise ValidationError(said % {"most": MAX_PASSKEYS})
        return _registration(self.cleaned_data["credential"])


class RenamePasskey(EditWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    name = forms.CharField(max_length=_MAX_NAME_CHARS)


class _CheckedPasskeyForm:
    """Before a form of allauth's that takes an assertion."""

    answer: AuthenticationResponse

    def clean_credential(self) -> Authenticator:
        self.answer = _authentication(self.cleaned_data["credential"])  # type: ignore[attr-defined]
        return super().clean_credential()  # type: ignore[misc]  # allauth's form comes after


class SecondFactorByPasskey(_CheckedPasskeyForm, AuthenticateWebAuthnForm):  # type: ignore[misc]  # no types
    credential = _AnswerField()


class ConfirmByPasskey(_CheckedPasskeyForm, ReauthenticateWebAuthnForm):  # type: ignore[misc]  # no types
    credential = _AnswerField()


class SignInByPasskey(_CheckedPasskeyForm, LoginWebAuthnForm):  # type: ignore[misc]  # no types
    credential = _AnswerField()

    def clean_credential(self) -> Authenticator:
        try:
            authenticator = super().clean_credential()
        except ValidationError as error:
            raise ValidationError(_NOT_A_PASSKEY) from error
        # Looked at here too: the question may have been a second factor's, which wants no more than
        # somebody's touch, and would do for one who has found a key without a PIN.
        if not self.answer.response.authenticator_data.is_user_verified():
            raise ValidationError(_NOT_A_PASSKEY)
        return authenticator


def _authentication(answer: Mapping[str, Any]) -> AuthenticationResponse:
    """Raises ValidationError."""
    try:
        parsed = AuthenticationResponse.from_dict(answer)
        answer["response"].get("userHandle")
    except _MALFORMED as error:
        raise ValidationError(_NOT_UNDERSTOOD) from error
    return parsed


def _registration(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of it: the key, and whether the authenticator knows whose it is.

    Raises ValidationError, for a key of a kind that we cannot verify too.
    """
    try:
        parsed = RegistrationResponse.from_dict(answer)
        attested = parsed.response.attestation_object.auth_data.credential_data
        if attested is None or not _can_verify(attested.public_key):
            raise ValidationError(_NOT_UNDERSTOOD)
        properties = answer.get("clientExtensionResults", {}).get("credProps", {})
        is_resident = properties.get("rk") is True
    except _MALFORMED as error:
        raise ValidationError(_NOT_UNDERSTOOD) from error
    kept = {name: dict(parsed)[name] for name in ("id", "rawId", "type")}
    response = {
        "clientDataJSON": answer["response"]["clientDataJSON"],
        "attestationObject": answer["response"]["attestationObject"],
    }
    results = {"credProps": {"rk": is_resident}}
    return {**kept, "response": response, "clientExtensionResults": results}


def _can_verify(key: CoseKey) -> bool:
    """Tried here, so that signing in by it cannot fail for another reason than its signature.

    Raises what a malformed key does, of `_MALFORMED`.
    """
    if key.ALGORITHM not in CoseKey.supported_algorithms():
        return False
    try:
        key.verify(b"", b"")
    except InvalidSignature:
        return True
    return False
