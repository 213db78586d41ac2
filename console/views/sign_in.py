"""Signing in and out, and choosing a tenant."""

from typing import Final

import redis
import structlog
from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.contrib.auth import logout
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_http_methods, require_POST

from caret.foundation.ids import TenantId
from caret.foundation.places import NoPlace
from console.member import Member, choose_tenant, client_address, for_members
from console.outward import OUTWARD
from console.password_checks import BUSY, Busy, check_password
from console.sign_in.identity_provider import authorization_url
from console.sign_in.next_page import next_page
from console.sign_in.saml import question_url
from console.throttle import WINDOW_S, forget_tries, take_try
from tenants.identity.queries import Provider, SamlProvider, provider_for

logger = structlog.get_logger(__name__)

WRONG: Final = gettext_noop("This e-mail address and password do not belong together.")
TOO_MANY: Final = gettext_noop("Too many tries. Wait a minute, then try again.")
UNAVAILABLE: Final = gettext_noop("Signing in is not possible right now: Redis does not answer.")
NO_PROVIDER: Final = gettext_noop(
    "No identity provider is set up for this address. Use your password."
)
PROVIDER_SILENT: Final = gettext_noop(
    "Your identity provider does not answer right now. Try again later."
)
_RETRY_AFTER_S: Final = {429: WINDOW_S, 503: 5}


@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    target = next_page(request)
    if request.method == "GET":
        return redirect(target) if request.user.is_authenticated else sign_in_page(request, target)
    try:
        return _tried(request, target)
    except redis.RedisError:
        return sign_in_page(request, target, UNAVAILABLE, 503)
    except Busy:
        return sign_in_page(request, target, BUSY, 503)


def _tried(request: HttpRequest, target: str) -> HttpResponse:
    """Raises redis.RedisError, Busy."""
    email, password = request.POST.get("email", ""), request.POST.get("password", "")
    address = client_address(request)
    if not take_try(email=email, address=address):
        logger.warning("sign_in.throttled", address=address)
        return sign_in_page(request, target, TOO_MANY, 429)
    if (provider := provider_for(email)) is not None:
        return to_provider(request, provider, target)
    if "single" in request.POST:
        return sign_in_page(request, target, NO_PROVIDER, 400)
    user = check_password(request, email=email, password=password)
    if user is None:
        return sign_in_page(request, target, WRONG, 400)
    forget_tries(email=email, address=address)
    # The only door of allauth's that takes a password checked by somebody else: it asks for the
    # second factor, if there is one, and signs in then.
    login = Login(user=user, redirect_url=target, email_verification="none")
    response: HttpResponse = perform_password_login(request, {"email": user.email}, login)
    return response


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("console:sign-in")


@require_POST
@for_members
def switch_tenant(request: HttpRequest, member: Member) -> HttpResponse:
    if not choose_tenant(request, TenantId(request.POST.get("tenant", ""))):
        raise Http404
    return redirect("console:overview")


def to_provider(
    request: HttpRequest, provider: Provider, target: str, *, again: bool = False
) -> HttpResponse:
    """By way of a page: a form's answer may not lead elsewhere (Content-Security-Policy).
    `again`: also who is signed in there."""
    try:
        with OUTWARD.taken(provider.tenant_id):
            url = _way_in(request, provider, target, again=again)
    except NoPlace:
        return sign_in_page(request, target, BUSY, 503)
    except OAuth2Error:
        return sign_in_page(request, target, PROVIDER_SILENT, 503)
    return render(request, "console/to_provider.html", {"url": url, "issuer": provider.issuer})


def _way_in(request: HttpRequest, provider: Provider, target: str, *, again: bool) -> str:
    """Raises OAuth2Error."""
    if isinstance(provider, SamlProvider):
        return question_url(request, provider, target, again=again)
    return authorization_url(request, provider.tenant_id, target, again=again)


def sign_in_page(
    request: HttpRequest, target: str, message: str = "", status: int = 200
) -> HttpResponse:
    context = {"next": target, "message": gettext(message), "email": request.POST.get("email", "")}
    response = render(request, "console/sign_in.html", context, status=status)
    if status in _RETRY_AFTER_S:
        response["Retry-After"] = str(_RETRY_AFTER_S[status])
    return response
