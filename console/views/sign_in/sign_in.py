"""Sign-in, sign-out, reauthentication at an identity provider, and the choice of a tenant."""

from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

import redis
import structlog
from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings
from django.contrib.auth import logout
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from caret.foundation.concurrency.bulkhead import BulkheadFull
from caret.foundation.ids import TenantId
from console.layout.htmx import render_page
from console.layout.pending_form import find_pending_form
from console.limits.outbound_limit import OUTBOUND_LIMIT
from console.limits.password_hashing import BUSY, TooManyHashes, check_password
from console.limits.throttling import (
    AttemptThrottled,
    Secret,
    count_attempt,
    count_request_of_network,
    forgive_attempt,
)
from console.sign_in.account_adapter import PASSWORD_VERSION
from console.sign_in.current_member import (
    CurrentMember,
    client_address,
    member_required,
    set_session_tenant,
)
from console.sign_in.devices import build_attempt
from console.sign_in.next_page import next_page
from console.sign_in.sessions.session import provider_tenant_of
from console.sign_in.sso.oidc import authorization_url
from console.sign_in.sso.saml import authn_request_url
from tenants.identity.passwords.operations import compute_password_version
from tenants.identity.sso.queries import Provider, SamlProvider, find_provider_for_email

_RESUME_PAGE: Final = "console/account/resume.html"

logger = structlog.get_logger(__name__)

WRONG_CREDENTIALS: Final = gettext_noop("The e-mail address or password is wrong.")
OTHER_WAYS: Final = gettext_noop("If you have a passkey, you can sign in with it now.")
UNAVAILABLE: Final = gettext_noop("You cannot sign in right now: Redis does not respond.")
NO_PROVIDER: Final = gettext_noop(
    "There is no identity provider for this address. Use your password."
)
PROVIDER_SILENT: Final = gettext_noop("Your identity provider does not respond. Try again later.")
_RETRY_AFTER_S: Final = 5


@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    target = next_page(request)
    if request.method == "GET":
        return (
            redirect(target)
            if request.user.is_authenticated
            else render_sign_in_page(request, target)
        )
    try:
        return _try_sign_in(request, target)
    except redis.RedisError:
        return render_sign_in_page(request, target, UNAVAILABLE, 503)
    except TooManyHashes:
        return render_sign_in_page(request, target, BUSY, 503)


def _try_sign_in(request: HttpRequest, target: str) -> HttpResponse:
    """Check the password, or send users of an identity provider there.

    Raises redis.RedisError, TooManyHashes.
    """
    email, password = request.POST.get("email", ""), request.POST.get("password", "")
    provider = find_provider_for_email(email)
    if provider is not None or "single" in request.POST:  # the button "Single sign-on"
        return _start_single_sign_on(request, provider, target)
    attempt = build_attempt(request, Secret.PASSWORD, email)
    if (throttle := count_attempt(attempt)) is not None:
        return render_throttled_page(request, target, throttle)
    try:
        user = check_password(request, email=email, password=password)
    except TooManyHashes:  # the password was not checked
        forgive_attempt(attempt)
        raise
    if user is None:
        return render_sign_in_page(request, target, WRONG_CREDENTIALS, 400)
    forgive_attempt(attempt)
    # allauth's only function for a password that other code has checked. It requires the second
    # factor, if there is one, before the sign-in.
    login = Login(user=user, redirect_url=target, email_verification="none")
    # With the version, the account adapter notices a password change during the sign-in.
    login.signal_kwargs = {PASSWORD_VERSION: compute_password_version(user.password)}
    response: HttpResponse = perform_password_login(request, {"email": user.email}, login)
    return response


def _start_single_sign_on(
    request: HttpRequest, provider: Provider | None, target: str
) -> HttpResponse:
    """Lead the user to the identity provider. Raises redis.RedisError.

    Only the network's requests are limited. Attempts per account are not counted, because no
    password is checked. Therefore other people cannot block a user of a provider.
    """
    throttle = count_request_of_network(address=client_address(request))
    if throttle is not None:
        return render_throttled_page(request, target, throttle)
    if provider is None:
        return render_sign_in_page(request, target, NO_PROVIDER, 400)
    return render_provider_page(request, provider, target)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    logout(request)
    return redirect("console:sign-in")


@require_POST
@member_required
def switch_tenant(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    if not set_session_tenant(request, TenantId(request.POST.get("tenant", ""))):
        raise Http404  # the session may not use the tenant
    return redirect("console:overview")


def render_provider_page(
    request: HttpRequest, provider: Provider, target: str, *, force_reauthentication: bool = False
) -> HttpResponse:
    """Show a page that leads to the identity provider.

    A redirect does not work: the content security policy forbids that a form's submission is
    redirected to another site. `force_reauthentication` makes the provider authenticate the user
    again, even if they are signed in there. If the provider does not respond, or too many outgoing
    requests are in flight, show the sign-in page with an error.
    """
    try:
        with OUTBOUND_LIMIT.acquire(provider.tenant_id):
            url = _provider_sign_in_url(
                request, provider, target, force_reauthentication=force_reauthentication
            )
    except BulkheadFull:
        return render_sign_in_page(request, target, BUSY, 503)
    except OAuth2Error:
        return render_sign_in_page(request, target, PROVIDER_SILENT, 503)
    context = {"url": url, "issuer": provider.issuer}
    return render(request, "console/sign_in/redirect_to_provider.html", context)


def _provider_sign_in_url(
    request: HttpRequest, provider: Provider, target: str, *, force_reauthentication: bool
) -> str:
    """Return the provider's sign-in URL. Raises OAuth2Error."""
    if isinstance(provider, SamlProvider):
        return authn_request_url(
            request, provider, target, force_reauthentication=force_reauthentication
        )
    return authorization_url(
        request, provider.tenant_id, target, force_reauthentication=force_reauthentication
    )


def render_throttled_page(
    request: HttpRequest, target: str, throttle: AttemptThrottled
) -> HttpResponse:
    logger.warning(
        "sign_in.throttled", address=client_address(request), by_network=throttle.is_by_network
    )
    message = throttle.message
    if not throttle.is_by_network:
        message = f"{message} {gettext(OTHER_WAYS)}"
    response = render_sign_in_page(request, target, message, 429)
    response["Retry-After"] = str(throttle.wait_s)
    return response


def render_sign_in_page(
    request: HttpRequest, target: str, message: str = "", status: int = 200
) -> HttpResponse:
    """Show the sign-in page.

    `target` is the page to open after sign-in. `message` is an error message, in English or already
    translated; "": none.
    """
    context = {
        "next": target,
        "message": gettext(message),
        "email": request.POST.get("email", ""),
        "has_sign_up": settings.SELF_SIGN_UP,
    }
    response = render(request, "console/sign_in/sign_in.html", context, status=status)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response["Retry-After"] = str(_RETRY_AFTER_S)
    return response


@require_GET
@member_required
def resume(request: HttpRequest, member: CurrentMember, token: str) -> HttpResponse:
    """Show the form that was stored before a step-up, so that the user can submit it.

    Status 410 means that the form is not stored any more.
    """
    form = find_pending_form(member.actor, token)
    return render_page(
        request,
        member,
        _RESUME_PAGE,
        {"form": form},
        status=HTTPStatus.OK if form else HTTPStatus.GONE,
    )


@require_http_methods(["GET", "POST"])
@member_required
def sign_in_again(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Reauthenticate a user of an identity provider. These users have no password in Caret."""
    target = next_page(request)
    if request.method == "GET":
        return render_page(request, member, "console/account/reauthenticate.html", {"next": target})
    provider = find_provider_for_email(member.email)
    if provider is not None and provider.tenant_id == provider_tenant_of(request):
        return render_provider_page(request, provider, target, force_reauthentication=True)
    # The domain now belongs to another provider, or to none: start a new sign-in.
    logout(request)
    return redirect(f"{reverse('console:sign-in')}?{urlencode({'next': target})}")
