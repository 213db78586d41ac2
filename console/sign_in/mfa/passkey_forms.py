"""Validation of browsers' passkey responses, before django-allauth processes them.

django-allauth trusts the shape of a response. Without these forms, a malformed response would cause
a server error, and every field in it would be stored. They limit the size, parse the response and
reduce it to the fields in use.
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
_MAX_RESPONSE_CHARS: Final = 16_384  # real responses have 1,000 to 3,000
_MAX_NAME_CHARS: Final = 60
_UNEXPECTED_RESPONSE: Final = _("Your browser sent an unexpected response. Try again.")
_NOT_A_PASSKEY: Final = _("This passkey does not belong to your account.")
# Exceptions of the parser for malformed bytes.
_MALFORMED: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError)


class _ResponseField(forms.JSONField):
    """A JSON object of limited size. Raises ValidationError."""

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


class AddPasskey(AddWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    name = forms.CharField(required=False, max_length=_MAX_NAME_CHARS)
    credential = _ResponseField()
    passwordless = None  # no checkbox: every passkey that verifies its user can sign in alone

    def clean_credential(self) -> dict[str, Any]:
        passkeys = Authenticator.objects.filter(user=self.user, type=Authenticator.Type.WEBAUTHN)
        if passkeys.count() >= MAX_PASSKEYS:
            message = gettext("You already have %(max)s passkeys. Remove one first.")
            raise ValidationError(message % {"max": MAX_PASSKEYS})
        return _parse_registration(self.cleaned_data["credential"])


class RenamePasskey(EditWebAuthnForm):  # type: ignore[misc]  # allauth has no types
    name = forms.CharField(max_length=_MAX_NAME_CHARS)


class _CheckedPasskeyForm:
    """Parses an assertion before allauth's form processes it."""

    assertion: AuthenticationResponse

    def clean_credential(self) -> Authenticator:
        self.assertion = _parse_authentication(self.cleaned_data["credential"])  # type: ignore[attr-defined]
        return super().clean_credential()  # type: ignore[misc]  # allauth's form comes next


class SecondFactorByPasskey(_CheckedPasskeyForm, AuthenticateWebAuthnForm):  # type: ignore[misc]  # no types
    credential = _ResponseField()


class ConfirmByPasskey(_CheckedPasskeyForm, ReauthenticateWebAuthnForm):  # type: ignore[misc]  # no types
    credential = _ResponseField()


class SignInByPasskey(_CheckedPasskeyForm, LoginWebAuthnForm):  # type: ignore[misc]  # no types
    credential = _ResponseField()

    def clean_credential(self) -> Authenticator:
        try:
            authenticator = super().clean_credential()
        except ValidationError as error:
            raise ValidationError(_NOT_A_PASSKEY) from error
        # Check the user verification here, too: the challenge may come from the second-factor page,
        # which requires only a touch. Otherwise, a person who finds a security key without a PIN
        # could sign in.
        if not self.assertion.response.authenticator_data.is_user_verified():
            raise ValidationError(_NOT_A_PASSKEY)
        return authenticator


def _parse_authentication(document: Mapping[str, Any]) -> AuthenticationResponse:
    """Return the parsed assertion. Raises ValidationError."""
    try:
        response = AuthenticationResponse.from_dict(document)
        document["response"].get("userHandle")
    except _MALFORMED as error:
        raise ValidationError(_UNEXPECTED_RESPONSE) from error
    return response


def _parse_registration(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields to store: the key, and whether the passkey is discoverable.

    Raises ValidationError, also for a key type that we cannot verify.
    """
    try:
        registration = RegistrationResponse.from_dict(document)
        credential = registration.response.attestation_object.auth_data.credential_data
        if credential is None or not _can_verify(credential.public_key):
            raise ValidationError(_UNEXPECTED_RESPONSE)
        properties = document.get("clientExtensionResults", {}).get("credProps", {})
        is_resident = properties.get("rk") is True
    except _MALFORMED as error:
        raise ValidationError(_UNEXPECTED_RESPONSE) from error
    fields = {name: dict(registration)[name] for name in ("id", "rawId", "type")}
    response = {
        "clientDataJSON": document["response"]["clientDataJSON"],
        "attestationObject": document["response"]["attestationObject"],
    }
    results = {"credProps": {"rk": is_resident}}
    return {**fields, "response": response, "clientExtensionResults": results}


def _can_verify(key: CoseKey) -> bool:
    """Return whether we can verify signatures of this key.

    This is tried at registration, so that a later sign-in can fail only because of its signature.
    Raises one of `_MALFORMED` for a malformed key.
    """
    if key.ALGORITHM not in CoseKey.supported_algorithms():
        return False
    try:
        key.verify(b"", b"")
    except InvalidSignature:
        return True
    return False
