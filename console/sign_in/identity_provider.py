"""Signing in by a tenant's own identity provider, over OpenID Connect.

django-allauth speaks the protocol; who is let in is decided here, by the address alone: only one of
a domain that was verified for the very tenant whose provider asserts it. Nothing else is kept: no
token, no account of the provider's.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import jwt
import requests
import structlog
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.core.exceptions import ImproperlyConfigured
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext

from caret.foundation.ids import TenantId
from caret.foundation.places import NoPlace
from console.outward import OUTWARD
from console.password_checks import BUSY
from console.sign_in.guarded_http import guarded_session
from console.sign_in.let_in import FAILED, Arrival, let_in, refusal
from tenants.identity.queries import OpenIdProvider, find_provider
from tenants.texts import is_storable

logger = structlog.get_logger(__name__)

_ASKED_AGAIN_AT: Final = "asked_again_at_s"  # in what allauth keeps of a question
# OpenID Connect Core, 3.1.2.1: either asks again, and by `max_age` the token says when.
_AGAIN: Final = MappingProxyType({"prompt": "login", "max_age": "0"})
# What allauth raises for a provider that does not answer, or not as it should.
_UNSOUND: Final = (
    *(requests.RequestException, LookupError, TypeError, ValueError),
    *(AttributeError, RecursionError, OverflowError),
    ImproperlyConfigured,  # a subject that its column, of which we use nothing, would not hold
)


class IdentityProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # no types
    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """The one of the tenant that `provider` names; never all."""
        tenant_id = _tenant_id(provider or "")
        found = None if tenant_id is None else find_provider(tenant_id)
        if not isinstance(found, OpenIdProvider) or client_id not in (None, found.client_id):
            return []
        return [
            SocialApp(
                provider=OpenIDConnectProvider.id,
                provider_id=provider,
                name=found.issuer,
                client_id=found.client_id,
                secret=found.client_secret,
                settings={
                    "server_url": found.issuer.rstrip("/"),
                    "oauth_pkce_enabled": True,
                    "fetch_userinfo": False,
                },
            )
        ]

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False  # who is let in is let in by pre_social_login

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        raise ImmediateHttpResponse(_let_in(request, sociallogin))

    def on_authentication_error(self, request: HttpRequest, provider: Any, **kwargs: Any) -> None:
        reason = type(kwargs.get("exception")).__name__
        logger.warning("sign_in.provider_failed", tenant_id=provider.app.provider_id, reason=reason)
        raise ImmediateHttpResponse(refusal(request, FAILED))

    def get_requests_session(self) -> requests.Session:
        return guarded_session()


class StrictOpenIDConnect(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # no types
    """As allauth has it, and the ID token's signature is looked at even where TLS may do."""

    def get_client(self, request: HttpRequest, app: SocialApp) -> Any:
        with _sound():
            return super().get_client(request, app)

    def get_access_token_data(self, *args: Any, **kwargs: Any) -> Any:
        with _sound():
            return super().get_access_token_data(*args, **kwargs)

    def parse_token(self, data: Any) -> Any:
        with _sound():
            return super().parse_token(data)

    def complete_login(self, *args: Any, **kwargs: Any) -> SocialLogin:
        with _sound():
            return super().complete_login(*args, **kwargs)

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        """Not by allauth's jwtkit.verify_and_decode: that keeps each token's `jti` in Redis, of
        whatever length and for as long as the provider likes. Our question's state, PKCE and the
        code that is good once leave nothing to replay. Raises OAuth2Error."""
        try:
            algorithm, key = jwtkit.fetch_key(
                id_token, self.openid_config["jwks_uri"], jwtkit.lookup_kid_jwk
            )
            claims = jwt.decode(
                id_token,
                key=key,
                algorithms=[algorithm],
                issuer=self.openid_config["issuer"],
                audience=app.client_id,
            )
        except jwt.PyJWTError as error:
            raise OAuth2Error("The ID token is not for us.") from error
        if not is_storable(str(claims.get("sub"))):  # allauth asks Postgres for it
            raise OAuth2Error("The ID token's subject is no text.")
        return claims


def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Where identity providers send people back to."""
    try:
        view = OAuth2CallbackView.adapter_view(StrictOpenIDConnect(request, provider_id))
        with OUTWARD.taken(provider_id):
            response: HttpResponse = view(request)
    except SocialApp.DoesNotExist as error:
        raise Http404 from error
    except NoPlace:
        return refusal(request, BUSY, 503)
    except OAuth2Error:  # before allauth has begun to catch it
        logger.warning("sign_in.provider_failed", tenant_id=provider_id, reason="OAuth2Error")
        return refusal(request, FAILED)
    return response


def authorization_url(
    request: HttpRequest, tenant_id: TenantId, target: str, *, again: bool = False
) -> str:
    """Where the tenant's people sign in; the session remembers what was asked, so that no answer
    to somebody else's question is taken. `again`: also who is signed in there. Raises
    OAuth2Error."""
    provider = get_adapter().get_provider(request, tenant_id)
    asked_again_at_s = int(time.time()) if again else None
    with _sound():
        response: HttpResponse = provider.redirect(
            request,
            "login",
            next_url=target,
            data={_ASKED_AGAIN_AT: asked_again_at_s},
            auth_params=dict(_AGAIN) if again else {},
        )
    return response["Location"]


@contextmanager
def _sound() -> Iterator[None]:
    """Raises OAuth2Error for whatever a provider's answers make allauth raise."""
    try:
        yield
    except _UNSOUND as error:
        raise OAuth2Error("The provider's answer is none.") from error


def _let_in(request: HttpRequest, sociallogin: SocialLogin) -> HttpResponse:
    tenant_id = TenantId(sociallogin.account.provider)
    claims = sociallogin.account.extra_data.get("id_token") or {}
    if not _is_verified(claims):
        logger.warning("sign_in.provider_overstepped", tenant_id=tenant_id)
        return refusal(request, gettext("Your identity provider has not verified your address."))
    asked = sociallogin.state.get("data") or {}
    if _ASKED_AGAIN_AT not in asked:  # by a release before this one: nothing says what for
        return _ask_anew(request, tenant_id, sociallogin.get_redirect_url(request))
    arrival = Arrival(
        tenant_id=tenant_id,
        email=str(claims.get("email") or ""),
        name=str(claims.get("name") or ""),
        target=sociallogin.get_redirect_url(request),
        signed_in_at_s=_signed_in_at_s(claims),
        asked_again_at_s=asked[_ASKED_AGAIN_AT],
    )
    return let_in(request, arrival)


def _ask_anew(request: HttpRequest, tenant_id: TenantId, target: str | None) -> HttpResponse:
    """Whoever is signed in here came to confirm who he is."""
    try:
        url = authorization_url(
            request, tenant_id, target or "/", again=request.user.is_authenticated
        )
    except OAuth2Error:
        return refusal(request, FAILED)
    return redirect(url)


def _signed_in_at_s(claims: dict[str, Any]) -> int | None:
    said = claims.get("auth_time")
    return said if type(said) is int else None  # True is an int, too


def _is_verified(claims: dict[str, Any]) -> bool:
    """Providers that verify each address say nothing of it; some write the truth as a text."""
    said = claims.get("email_verified", True)
    return said is True or said == "true"


def _tenant_id(text: str) -> TenantId | None:
    try:
        return TenantId(str(uuid.UUID(text)))
    except ValueError:
        return None
