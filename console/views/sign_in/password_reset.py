"""Forgotten passwords: a page that requests a link by e-mail, and a page that the link opens.

The response of the first page does not tell whether an e-mail address has an account. A worker
looks up the account and sends the e-mail (tenants.identity.passwords.reset_mail).

The link contains a token. `open_link` moves it into the session and redirects to the page for the
new password, so that the URL of this page does not contain the token.
"""

import uuid
from typing import Final

from django.contrib import messages
from django.contrib.auth import logout
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods
from redis import RedisError

from console.limits.password_hashing import BUSY, TooManyHashes, hashing_slot
from console.limits.throttling import (
    AttemptThrottled,
    Secret,
    count_attempt,
    count_request_of_network,
)
from console.sign_in.current_member import client_address
from console.sign_in.devices import build_attempt
from console.sign_in.password_forms import ForgotPasswordForm, NewPasswordForm
from console.texts.error_messages import REDIS_UNAVAILABLE, translate_error
from tenants.base.errors import InvalidValue, NotFound
from tenants.identity.passwords.operations import find_reset_email, reset_password
from tenants.identity.passwords.reset_links import ResetLink
from tenants.identity.passwords.reset_mail import enqueue_reset_request

_FORGOT: Final = "console/sign_in/forgot_password.html"
_RESET: Final = "console/sign_in/reset_password.html"
_SESSION_LINK: Final = "password-reset"  # key of the session; user ID and token
_RETRY_AFTER_S: Final = 5


@require_http_methods(["GET", "POST"])
def forgot_password(request: HttpRequest) -> HttpResponse:
    if request.method == "GET":
        email = request.user.get_username() if request.user.is_authenticated else ""
        form = ForgotPasswordForm(initial={"email": email})
        return render(request, _FORGOT, {"form": form})
    form = ForgotPasswordForm(request.POST)
    if not form.is_valid():
        return render(request, _FORGOT, {"form": form}, status=400)
    try:
        return _request_link(request, form)
    except RedisError:
        return _show_unavailable(
            request, _FORGOT, {"form": form, "message": gettext(REDIS_UNAVAILABLE)}
        )


@require_GET
def link_requested(request: HttpRequest) -> HttpResponse:
    return render(request, "console/sign_in/forgot_password_sent.html")


@require_GET
def open_link(request: HttpRequest, user_id: uuid.UUID, token: str) -> HttpResponse:
    """Move the token into the session. Invalid tokens are not stored: anybody could send many."""
    try:
        address = client_address(request)
        throttle = count_request_of_network(address=address, purpose="password-reset")
        if throttle is not None:
            return _show_throttled(request, _RESET, {"refusal": throttle.message}, throttle)
        find_reset_email(ResetLink(user_id, token))
    except RedisError:
        return _show_unavailable(request, _RESET, {"refusal": gettext(REDIS_UNAVAILABLE)})
    except NotFound as error:
        return render(request, _RESET, {"refusal": translate_error(error)}, status=404)
    request.session[_SESSION_LINK] = [str(user_id), token]
    return redirect("console:reset-password")


@require_http_methods(["GET", "POST"])
def new_password(request: HttpRequest) -> HttpResponse:
    # Without a link in the session, the ID is 0. No user has this ID, so the page shows an error.
    user_id, token = request.session.get(_SESSION_LINK, [str(uuid.UUID(int=0)), ""])
    link = ResetLink(uuid.UUID(user_id), token)
    try:
        email = find_reset_email(link)
        if request.method == "GET":
            return render(request, _RESET, {"email": email, "form": NewPasswordForm()})
        return _reset_password(request, link, email)
    except NotFound as error:
        return render(request, _RESET, {"refusal": translate_error(error)}, status=404)


def _request_link(request: HttpRequest, form: ForgotPasswordForm) -> HttpResponse:
    """Queue the request for a link. Raises redis.RedisError."""
    email = form.cleaned_data["email"]
    throttle = count_attempt(build_attempt(request, Secret.RESET_LINK, email))
    if throttle is not None:
        return _show_throttled(
            request, _FORGOT, {"form": form, "message": throttle.message}, throttle
        )
    enqueue_reset_request(email=email, now=timezone.now())
    return redirect("console:reset-requested")


def _reset_password(request: HttpRequest, link: ResetLink, email: str) -> HttpResponse:
    """Set the new password. The user must then sign in, with a second factor if there is one.

    Raises NotFound.
    """
    form = NewPasswordForm(request.POST)
    context = {"email": email, "form": form}
    if not form.is_valid():
        return render(request, _RESET, context, status=400)
    try:
        # The slot is released before the commit. Right after the commit an e-mail is sent, and
        # sending may be slow.
        with transaction.atomic(), hashing_slot():
            reset_password(
                link=link,
                password=form.cleaned_data["password"],
                address=client_address(request),
                now=timezone.now(),
            )
    except InvalidValue as error:
        form.add_error("password", translate_error(error))
        return render(request, _RESET, context, status=400)
    except TooManyHashes:
        return _show_unavailable(request, _RESET, context | {"message": gettext(BUSY)})
    logout(request)  # the reset ended all sessions of the user, perhaps including this one
    messages.success(request, gettext("Password changed. Sign in with the new one."))
    return redirect("console:sign-in")


def _show_throttled(
    request: HttpRequest, page: str, context: dict[str, object], throttle: AttemptThrottled
) -> HttpResponse:
    response = render(request, page, context, status=429)
    response["Retry-After"] = str(throttle.wait_s)
    return response


def _show_unavailable(request: HttpRequest, page: str, context: dict[str, object]) -> HttpResponse:
    response = render(request, page, context, status=503)
    response["Retry-After"] = str(_RETRY_AFTER_S)
    return response
