"""Validation of browsers' passkey responses, before django-allauth processes them.

django-allauth trusts the shape of a response. A malformed response would cause a server error, and
every field of a response would be stored. The forms here therefore limit the size of a response,
parse it, and reduce it to the fields in use.
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

MAX_PASSKEYS: Final = 20  # per user
_MAX_RESPONSE_CHARS: Final = 16_384  # real responses have 1,000 to 3,000 characters
_MAX_NAME_CHARS: Final = 60
_UNEXPECTED_RESPONSE: Final = _("Your browser sent an unexpected response. Try again.")
_PASSKEY_REJECTED: Final = _("This passkey does not belong to your account.")
# Exceptions that the parser of fido2 raises for a malformed response.
_PARSER_ERRORS: Final = (
    *(ValueError, TypeError, KeyError, IndexError),
    *(AttributeError, AssertionError),
)


class _ResponseField(forms.JSONField):
    """A form field for a JSON object of limited size."""

    widget = forms.HiddenInput

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and len(value) > _MAX_RESPONSE_CHARS:
            raise ValidationError(_UNEXPECTED_RESPONSE)
        try:
            response = super().to_python(value)
        except (RecursionError, ValueError) as error:  # deeply nested brackets, very long numbers
            raise ValidationError(_UNEXPECTED_RESPONSE) from error
        if response is not None and not isinstance(response, dict):
            raise ValidationError(_UNEXPECTED_RESPONSE)
        return response


class AddPasskeyForm(AddWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    name = forms.CharField(required=False, max_length=_MAX_NAME_CHARS)
    credential = _ResponseField()
    passwordless = None  # no checkbox: every passkey that verifies its user can sign in alone

    def clean_credential(self) -> dict[str, Any]:
        passkeys = Authenticator.objects.filter(user=self.user, type=Authenticator.Type.WEBAUTHN)
        if passkeys.count() >= MAX_PASSKEYS:
            message = gettext("You already have %(max)s passkeys. Remove one first.")
            raise ValidationError(message % {"max": MAX_PASSKEYS})
        return _parse_registration(self.cleaned_data["credential"])


class RenamePasskeyForm(EditWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    name = forms.CharField(max_length=_MAX_NAME_CHARS)


class _ParsedAssertionMixin:
    """Parses the browser's assertion before django-allauth's form processes it."""

    assertion: AuthenticationResponse  # set by clean_credential

    def clean_credential(self) -> Authenticator:
        self.assertion = _parse_authentication(self.cleaned_data["credential"])  # type: ignore[attr-defined]
        return super().clean_credential()  # type: ignore[misc]  # allauth's form comes next


class PasskeySecondFactorForm(_ParsedAssertionMixin, AuthenticateWebAuthnForm):  # type: ignore[misc]  # no types
    credential = _ResponseField()


class PasskeyStepUpForm(_ParsedAssertionMixin, ReauthenticateWebAuthnForm):  # type: ignore[misc]  # no types
    credential = _ResponseField()


class PasskeySignInForm(_ParsedAssertionMixin, LoginWebAuthnForm):  # type: ignore[misc]  # no types
    credential = _ResponseField()

    def clean_credential(self) -> Authenticator:
        try:
            authenticator = super().clean_credential()
        except ValidationError as error:
            raise ValidationError(_PASSKEY_REJECTED) from error
        # The challenge may come from the second-factor page, which requires only a touch. Without
        # this check, a person who finds a security key that has no PIN could sign in with it.
        if not self.assertion.response.authenticator_data.is_user_verified():
            raise ValidationError(_PASSKEY_REJECTED)
        return authenticator


def _parse_authentication(document: Mapping[str, Any]) -> AuthenticationResponse:
    """Return the parsed assertion. Raises ValidationError."""
    try:
        response = AuthenticationResponse.from_dict(document)
        document["response"].get("userHandle")  # django-allauth calls this without a check
    except _PARSER_ERRORS as error:
        raise ValidationError(_UNEXPECTED_RESPONSE) from error
    return response


def _parse_registration(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response with only the fields to store, such as the public key.

    `rk` ("resident key") says whether the passkey is discoverable. Raises ValidationError, also for
    a public key whose signatures we cannot verify.
    """
    try:
        registration = RegistrationResponse.from_dict(document)
        credential = registration.response.attestation_object.auth_data.credential_data
        if credential is None or not _can_verify(credential.public_key):
            raise ValidationError(_UNEXPECTED_RESPONSE)
        properties = document.get("clientExtensionResults", {}).get("credProps", {})
        is_discoverable = properties.get("rk") is True
    except _PARSER_ERRORS as error:
        raise ValidationError(_UNEXPECTED_RESPONSE) from error
    fields = {name: dict(registration)[name] for name in ("id", "rawId", "type")}
    response = {
        "clientDataJSON": document["response"]["clientDataJSON"],
        "attestationObject": document["response"]["attestationObject"],
    }
    results = {"credProps": {"rk": is_discoverable}}
    return {**fields, "response": response, "clientExtensionResults": results}


def _can_verify(public_key: CoseKey) -> bool:
    """Return whether we can verify signatures of this key.

    Called at registration, so that a later sign-in can fail only because its signature is wrong.
    Raises one of `_PARSER_ERRORS` for a malformed key.
    """
    if public_key.ALGORITHM not in CoseKey.supported_algorithms():
        return False
    try:
        public_key.verify(b"", b"")  # a usable key rejects an empty signature
    except InvalidSignature:
        return True
    return False
