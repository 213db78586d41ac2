"""Second factors: encrypted in the database, and recorded in the session that verified them."""

import base64
import io
from typing import Any, Final
from urllib.parse import urlencode

import qrcode
from allauth.account.internal.flows.login import (
    get_authentication_records,
    record_authentication,
)
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.usersessions.internal.flows.sessions import end_other_sessions
from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from qrcode.image.svg import SvgPathImage

from caret.foundation.crypto.aead import seal, unseal
from caret.foundation.crypto.key_derivation import derive_key

_SEAL_CONTEXT: Final = b"second-factor/1"  # a ciphertext of another context cannot be decrypted


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    """Our implementation of django-allauth's hooks for second factors."""

    def encrypt(self, text: str) -> str:
        return base64.b64encode(
            seal(_encryption_key(), text.encode(), bound_to=_SEAL_CONTEXT)
        ).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(
            _encryption_key(), base64.b64decode(encrypted_text), bound_to=_SEAL_CONTEXT
        ).decode()

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """Return WebAuthn's relying party, to which a new passkey is bound.

        Its ID is the host of the request, which is one of ALLOWED_HOSTS.
        """
        relying_party: dict[str, str] = super().get_public_key_credential_rp_entity()
        return relying_party | {"name": "Caret"}

    def generate_authenticator_name(self, user: Any, type: Any) -> str:  # allauth's parameters
        return "Passkey"

    def build_totp_svg(self, url: str) -> str:
        """Return the QR code as inline SVG, because the CSP forbids data URLs."""
        drawing = io.BytesIO()
        qrcode.make(url, image_factory=SvgPathImage, border=2).save(drawing)
        return drawing.getvalue().decode().partition("?>")[2]  # without the XML declaration


def record_new_factor(request: HttpRequest, factor_type: Any) -> None:
    """Record that this session has verified the factor that it just set up.

    If this is the user's first factor, the user's other sessions end: they have verified none.
    `factor_type` is an Authenticator.Type.
    """
    factors = _factors_of(request)
    factor = factors.filter(type=factor_type).latest("id")
    record_authentication(request, request.user, "mfa", id=factor.pk, type=factor.type)
    if len(factors) == 1:
        end_other_sessions(request, request.user)


def has_verified_mfa(request: HttpRequest) -> bool:
    """Return whether this session has verified a second factor, and the user still has any.

    The verified factor may have been replaced by another. Makes at most one query.
    """
    records = get_authentication_records(request, request.user)
    has_record = any(record["method"] == "mfa" for record in records)
    return has_record and _factors_of(request).exists()


def mfa_page_url(request: HttpRequest) -> str:
    """Return the URL of the page for setting up or verifying a second factor. Makes one query."""
    factor_types = set(_factors_of(request).values_list("type", flat=True))
    if not factor_types:
        return reverse("mfa_index")
    has_app = Authenticator.Type.TOTP in factor_types
    page = reverse("mfa_reauthenticate" if has_app else "mfa_reauthenticate_webauthn")
    return f"{page}?{urlencode({'next': reverse('console:overview')})}"


def _factors_of(request: HttpRequest) -> QuerySet[Any]:
    """Return the user's authenticator apps and passkeys, without recovery codes."""
    return Authenticator.objects.filter(  # type: ignore[no-any-return]
        user_id=request.user.pk,
        type__in=[Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN],
    )


def _encryption_key() -> bytes:
    return derive_key(settings.ROOT_SECRET, "second-factors/1")
