"""Sign-in through a tenant's own identity provider, over OpenID Connect.

django-allauth implements the protocol. A user is identified by the e-mail address alone, and the
tenant must have verified the domain of each address that its provider asserts. We store no tokens
and no provider accounts.

allauth's ID of a provider is the tenant's ID.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import requests
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

from caret.foundation.concurrency.bulkhead import BulkheadFull
from caret.foundation.ids import TenantId
from console.limits.outbound_limit import OUTBOUND_LIMIT
from console.limits.password_hashing import BUSY
from console.sign_in.sso.egress_session import create_guarded_session
from console.sign_in.sso.id_token import (
    ProviderResponseRejected,
    require_algorithm,
    verify_id_token,
)
from console.sign_in.sso.login import (
    CLOCKS_DIFFER,
    FAILED,
    SsoLogin,
    complete_sso_login,
    refuse_login,
    render_login_error,
)
from tenants.identity.sso.queries import OpenIdProvider, find_provider

# Reasons of ProviderResponseRejected that a wrong clock causes.
_CLOCK_REASONS: Final = frozenset({"token_expired", "token_from_the_future"})
_PERSONAL_CLAIMS: Final = ("email", "email_verified", "name")
# Name in the state that allauth stores. The value is the Unix time of our request, or None if the
# request required no new authentication.
_REAUTHENTICATION_AT: Final = "reauthentication_requested_at_s"
# Both force a new authentication (OpenID Connect Core, 3.1.2.1). `max_age` also requests its time.
_REAUTHENTICATION_PARAMETERS: Final = MappingProxyType({"prompt": "login", "max_age": "0"})
# Exceptions that allauth raises if a provider does not respond, or if its response is wrong.
_PROVIDER_ERRORS: Final = (
    *(requests.RequestException, LookupError, TypeError, ValueError),
    *(AttributeError, RecursionError, OverflowError),
    ImproperlyConfigured,  # the subject is too long for allauth's column
)


class IdentityProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # no types
    """Our implementation of django-allauth's hooks for identity providers."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """Return the app of the provider of the tenant `provider`, never all apps.

        allauth calls our registration at a provider an app.
        """
        tenant_id = _parse_tenant_id(provider or "")
        oidc_provider = None if tenant_id is None else find_provider(tenant_id)
        if not isinstance(oidc_provider, OpenIdProvider):
            return []
        if client_id is not None and client_id != oidc_provider.client_id:
            return []
        return [
            SocialApp(
                provider=OpenIDConnectProvider.id,
                provider_id=provider,
                name=oidc_provider.issuer,
                client_id=oidc_provider.client_id,
                secret=oidc_provider.client_secret,
                settings={
                    "server_url": oidc_provider.issuer.rstrip("/"),
                    "oauth_pkce_enabled": True,
                    "fetch_userinfo": False,
                },
            )
        ]

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False  # pre_social_login creates accounts

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Complete the sign-in instead of allauth, which would store the provider account.

        Raises ImmediateHttpResponse with the response.
        """
        raise ImmediateHttpResponse(_complete_login(request, sociallogin))

    def on_authentication_error(self, request: HttpRequest, provider: Any, **kwargs: Any) -> None:
        exception = kwargs.get("exception")
        response = _show_refusal(
            request, provider.app.provider_id, exception or _build_rejection(request)
        )
        raise ImmediateHttpResponse(response)

    def get_requests_session(self) -> requests.Session:
        return create_guarded_session()


class StrictOpenIDConnectAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # no types
    """allauth's adapter, but it verifies the signature of every ID token.

    allauth itself does not verify the signature of an ID token that it received over TLS.
    """

    def get_client(self, request: HttpRequest, app: SocialApp) -> Any:
        with _translate_provider_errors():
            return super().get_client(request, app)

    def get_access_token_data(self, *args: Any, **kwargs: Any) -> Any:
        with _translate_provider_errors():
            return super().get_access_token_data(*args, **kwargs)

    def parse_token(self, data: Any) -> Any:
        with _translate_provider_errors():
            return super().parse_token(data)

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any
    ) -> SocialLogin:
        with _translate_provider_errors():
            login = super().complete_login(request, app, token, **kwargs)
            claims = login.account.extra_data.get("id_token") or {}
            if claims and "email" not in claims and "userinfo_endpoint" in self.openid_config:
                login.account.extra_data["id_token"] = self._add_userinfo(claims, token.token)
            return login

    def _add_userinfo(self, claims: dict[str, Any], access_token: str) -> dict[str, Any]:
        """Return the claims, completed with _PERSONAL_CLAIMS from the UserInfo endpoint.

        A provider may omit these claims from the ID token (OpenID Connect Core, 5.4). Raises
        ProviderResponseRejected.
        """
        user_info = self._fetch_user_info(access_token)
        if user_info.get("sub") != claims["sub"]:  # OpenID Connect Core, 5.3.2
            raise ProviderResponseRejected("wrong_subject")
        return {name: user_info[name] for name in _PERSONAL_CLAIMS if name in user_info} | claims

    def _decode_id_token(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        """Verify the ID token and return its claims. Raises OAuth2Error.

        We do not use allauth's jwtkit.verify_and_decode. It stores each token's `jti` in Redis,
        with a length and lifetime that the provider chooses. The state, PKCE and the single-use
        code already prevent replays.
        """
        algorithm = require_algorithm(id_token)
        _, public_key = jwtkit.fetch_key(
            id_token, self.openid_config["jwks_uri"], jwtkit.lookup_kid_jwk
        )
        return verify_id_token(
            id_token,
            public_key,
            algorithm=algorithm,
            issuer=self.openid_config["issuer"],
            client_id=app.client_id,
        )


def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Handle the redirect from an identity provider back to the console."""
    try:
        view = OAuth2CallbackView.adapter_view(StrictOpenIDConnectAdapter(request, provider_id))
        with OUTBOUND_LIMIT.acquire(provider_id):
            response: HttpResponse = view(request)
    except SocialApp.DoesNotExist as error:
        raise Http404 from error
    except BulkheadFull:
        return render_login_error(request, gettext(BUSY), 503)
    except OAuth2Error as error:  # raised before allauth starts to catch it
        return _show_refusal(request, provider_id, error)
    return response


def authorization_url(
    request: HttpRequest, tenant_id: TenantId, target: str, *, force_reauthentication: bool = False
) -> str:
    """Return the provider's sign-in URL, and store our request to the provider in the session.

    Only this session can use the response. After the sign-in, the browser opens the path `target`.
    `force_reauthentication`: the provider must authenticate the user again, even if they are signed
    in there. Raises OAuth2Error.
    """
    provider = get_adapter().get_provider(request, tenant_id)
    requested_at_s = int(time.time()) if force_reauthentication else None
    with _translate_provider_errors():
        response: HttpResponse = provider.redirect(
            request,
            "login",
            next_url=target,
            data={_REAUTHENTICATION_AT: requested_at_s},
            auth_params=dict(_REAUTHENTICATION_PARAMETERS) if force_reauthentication else {},
        )
    return response["Location"]


@contextmanager
def _translate_provider_errors() -> Iterator[None]:
    """Turn _PROVIDER_ERRORS into ProviderResponseRejected, which allauth and callback() handle."""
    try:
        yield
    except _PROVIDER_ERRORS as error:
        raise ProviderResponseRejected("malformed", type(error).__name__) from error


def _build_rejection(request: HttpRequest) -> ProviderResponseRejected:
    """Return the rejection of a redirect that has no code, or that we did not request."""
    if request.GET.get("error") == "access_denied":
        return ProviderResponseRejected("access_denied")
    return ProviderResponseRejected("provider_error" if "error" in request.GET else "unsolicited")


def _show_refusal(request: HttpRequest, provider_id: str, error: Exception) -> HttpResponse:
    """Record the refusal of the sign-in, and show an error page.

    Errors other than ProviderResponseRejected come from allauth, for example if the provider
    rejects our code.
    """
    tenant_id = _parse_tenant_id(provider_id)
    assert tenant_id is not None  # an app exists only for a tenant with a provider
    refusal = error if isinstance(error, ProviderResponseRejected) else None
    reason = refusal.reason if refusal else "provider_error"
    return refuse_login(
        request,
        tenant_id,
        reason,
        message=gettext(CLOCKS_DIFFER if reason in _CLOCK_REASONS else FAILED),
        detail=refusal.detail if refusal else type(error).__name__,
    )


def _complete_login(request: HttpRequest, sociallogin: SocialLogin) -> HttpResponse:
    tenant_id = TenantId(sociallogin.account.provider)
    claims = sociallogin.account.extra_data.get("id_token") or {}
    if not _is_email_verified(claims):
        message = gettext("Your identity provider has not verified your e-mail address.")
        return refuse_login(request, tenant_id, "address_not_verified", message=message)
    state = sociallogin.state.get("data") or {}
    if _REAUTHENTICATION_AT not in state:
        # An older release sent this request. Whether it required reauthentication is unknown.
        return _send_request_again(request, tenant_id, sociallogin.get_redirect_url(request))
    sso_login = SsoLogin(
        tenant_id=tenant_id,
        email=str(claims.get("email") or ""),
        name=str(claims.get("name") or ""),
        target=sociallogin.get_redirect_url(request),
        signed_in_at_s=_read_time(claims, "auth_time"),
        issued_at_s=_read_time(claims, "iat"),
        reauthentication_requested_at_s=state[_REAUTHENTICATION_AT],
    )
    return complete_sso_login(request, sso_login)


def _send_request_again(
    request: HttpRequest, tenant_id: TenantId, target: str | None
) -> HttpResponse:
    """Send our request to the provider again.

    A user who is signed in here wanted to reauthenticate, so the new request requires that.
    """
    try:
        url = authorization_url(
            request, tenant_id, target or "/", force_reauthentication=request.user.is_authenticated
        )
    except OAuth2Error:
        return render_login_error(request, gettext(FAILED))
    return redirect(url)


def _read_time(claims: dict[str, Any], name: str) -> int | None:
    """Return the Unix time in a claim; None if it is missing or no integer."""
    time_s = claims.get(name)
    return time_s if type(time_s) is int else None  # bool is a subclass of int


def _is_email_verified(claims: dict[str, Any]) -> bool:
    """Return whether the address is verified.

    A missing claim counts as verified: providers that verify each address omit it. Some providers
    send "true" as a string.
    """
    claim = claims.get("email_verified", True)
    return claim is True or claim == "true"


def _parse_tenant_id(text: str) -> TenantId | None:
    """Return the ID; None if the text is no UUID."""
    try:
        return TenantId(str(uuid.UUID(text)))
    except ValueError:
        return None
