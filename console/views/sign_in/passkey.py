"""Sign-in with a passkey, without a password.

Users of an identity provider cannot sign in this way. Otherwise a passkey would still work after
the company has removed the user from the provider.
"""

from typing import Final

import redis
from allauth.account.models import Login
from allauth.mfa.webauthn.internal.auth import begin_authentication
from allauth.mfa.webauthn.internal.flows import perform_passwordless_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods

from console.limits.throttling import count_request_of_network
from console.sign_in.current_member import client_address
from console.sign_in.mfa.passkey_forms import PasskeySignInForm
from console.sign_in.next_page import next_page
from console.views.sign_in.sign_in import UNAVAILABLE, render_sign_in_page, render_throttled_page
from tenants.identity.sso.queries import find_provider_for_email

BY_PROVIDER_ONLY: Final = gettext_noop(
    "Your tenant requires you to sign in through its identity provider."
)


@require_http_methods(["GET", "POST"])
def sign_in_by_passkey(request: HttpRequest) -> HttpResponse:
    """Handle two POST requests.

    The first comes from the button of the sign-in page. The response asks the browser for a
    passkey. The second contains the browser's `credential`, and signs the user in. A GET
    redirects to the sign-in page.
    """
    target = next_page(request)
    if request.user.is_authenticated:
        return redirect(target)
    if request.method == "GET":
        return redirect("console:sign-in")
    try:
        throttle = count_request_of_network(address=client_address(request))
    except redis.RedisError:
        return render_sign_in_page(request, target, UNAVAILABLE, 503)
    if throttle is not None:
        return render_throttled_page(request, target, throttle)
    return (
        _sign_in_with_passkey(request, target)
        if "credential" in request.POST
        else _ask_for_passkey(request, target)
    )


def _ask_for_passkey(
    request: HttpRequest, target: str, message: str = "", status: int = 200
) -> HttpResponse:
    context = {"passkey_options": begin_authentication(), "next": target, "message": message}
    return render(request, "console/sign_in/passkey.html", context, status=status)


def _sign_in_with_passkey(request: HttpRequest, target: str) -> HttpResponse:
    form = PasskeySignInForm(data=request.POST)
    if not form.is_valid():
        return _ask_for_passkey(request, target, form.errors["credential"][0], 400)
    passkey = form.cleaned_data["credential"]
    if find_provider_for_email(passkey.user.email) is not None:
        return render_sign_in_page(request, target, BY_PROVIDER_ONLY, 403)
    login = Login(user=passkey.user, redirect_url=target, email_verification="none")
    response: HttpResponse = perform_passwordless_login(request, passkey, login)
    return response
