"""Second factors: kept sealed, and asked for where a tenant wants them."""

import base64
import io
from typing import Final

import qrcode
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.http import HttpRequest
from qrcode.image.svg import SvgPathImage

from caret.foundation.crypto import derive_key
from caret.foundation.sealing import seal, unseal

BY_PROVIDER: Final = "signed-in-by-provider"  # in the session: the tenant whose provider it was
_BOUND_TO: Final = b"second-factor/1"


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    def encrypt(self, text: str) -> str:
        return base64.b64encode(seal(_key(), text.encode(), bound_to=_BOUND_TO)).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(_key(), base64.b64decode(encrypted_text), bound_to=_BOUND_TO).decode()

    def build_totp_svg(self, url: str) -> str:
        """To stand in the page itself, which loads pictures from nowhere."""
        drawing = io.BytesIO()
        qrcode.make(url, image_factory=SvgPathImage, border=2).save(drawing)
        return drawing.getvalue().decode().partition("?>")[2]


def has_second_factor(request: HttpRequest) -> bool:
    """Whether he who is signed in has one of his own. One query."""
    return bool(
        Authenticator.objects.filter(
            user_id=request.user.pk,
            type__in=[Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN],
        ).exists()
    )


def _key() -> bytes:
    return derive_key(settings.ROOT_SECRET, "second-factors/1")
