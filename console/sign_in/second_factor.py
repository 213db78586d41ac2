"""Second factors: kept sealed, and asked for where a tenant wants them."""

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
from allauth.mfa.totp.views import ActivateTOTPView
from allauth.usersessions.internal.flows.sessions import end_other_sessions
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from qrcode.image.svg import SvgPathImage

from caret.foundation.crypto import derive_key
from caret.foundation.sealing import seal, unseal

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


class ActivateApp(ActivateTOTPView):  # type: ignore[misc]  # allauth has no types
    """The session that sets one up has shown a code of it; the others have not, and end."""

    def form_valid(self, form: Any) -> HttpResponse:
        with transaction.atomic():
            response: HttpResponse = super().form_valid(form)
            app = _factors_of(self.request).get(type=Authenticator.Type.TOTP)
            record_authentication(self.request, self.request.user, "mfa", id=app.pk, type=app.type)
            end_other_sessions(self.request, self.request.user)
        return response


def has_given_second_factor(request: HttpRequest) -> bool:
    """In this very session, and whoever is signed in has one still. One query."""
    records = get_authentication_records(request, request.user)
    has_given = any(record["method"] == "mfa" for record in records)
    return has_given and _factors_of(request).exists()


def page_for_second_factor(request: HttpRequest) -> str:
    """Where it is set up, or given by a session that began before. One query."""
    if not _factors_of(request).exists():
        return reverse("mfa_index")
    return f"{reverse('mfa_reauthenticate')}?{urlencode({'next': reverse('console:overview')})}"


def _factors_of(request: HttpRequest) -> QuerySet[Any]:
    return Authenticator.objects.filter(  # type: ignore[no-any-return]
        user_id=request.user.pk,
        type__in=[Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN],
    )


def _key() -> bytes:
    return derive_key(settings.ROOT_SECRET, "second-factors/1")
