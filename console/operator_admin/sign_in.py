"""The operators' sign-in: handle, password and authenticator code in one step."""

from http import HTTPStatus
from typing import Final

import redis
import structlog
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from console.limits.password_hashing import TooManyHashes, hashing_slot
from console.limits.throttling import AttemptThrottled, Secret, count_attempt, forgive_attempt
from console.operator_admin import session
from console.operator_admin.site import render_operator_page
from console.sign_in.current_member import client_address
from console.sign_in.devices import build_attempt, remember_device
from tenants.fleet.operators.accounts import authenticate_operator

logger = structlog.get_logger(__name__)

WRONG: Final = gettext_noop("The handle, password or code is wrong.")
UNAVAILABLE: Final = gettext_noop("You cannot sign in right now. Try again in a few seconds.")
_RETRY_AFTER_S: Final = 5  # if Redis is unreachable, or too many people are signing in


@never_cache
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if request.method == "GET":
        signed_in = session.operator_of(request) is not None
        return redirect("operators:index") if signed_in else _show_form(request)
    try:
        return _try_sign_in(request)
    except (redis.RedisError, TooManyHashes):
        return _show_form(request, UNAVAILABLE, 503)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    session.end_session(request)
    return redirect("operators:login")


def _try_sign_in(request: HttpRequest) -> HttpResponse:
    """Process the form. Raises redis.RedisError, TooManyHashes."""
    handle, address = request.POST.get("handle", "").strip(), client_address(request)
    account = f"operator:{handle}"
    attempt = build_attempt(request, Secret.OPERATOR_PASSWORD, account)
    if (throttle := count_attempt(attempt)) is not None:
        logger.warning("operator.throttled", address=address)
        return _show_throttled(request, throttle)
    try:
        with hashing_slot():
            operator = authenticate_operator(
                handle=handle,
                password=request.POST.get("password", ""),
                code=request.POST.get("code", ""),
                now=timezone.now(),
            )
    except TooManyHashes:
        forgive_attempt(attempt)
        raise
    if operator is None:
        logger.warning("operator.refused", address=address)
        return _show_form(request, WRONG, 400)
    forgive_attempt(attempt)
    session.start_session(request, operator)
    logger.info("operator.signed_in", operator=operator.handle, address=address)
    response = redirect("operators:index")
    remember_device(request, response, account)
    return response


def _show_throttled(request: HttpRequest, throttle: AttemptThrottled) -> HttpResponse:
    response = _show_form(request, throttle.message, 429)
    response["Retry-After"] = str(throttle.wait_s)
    return response


def _show_form(request: HttpRequest, message: str = "", status: int = 200) -> HttpResponse:
    """Return the sign-in page. `message` is the error; "": none."""
    context = {
        "title": gettext("Sign in"),
        "message": gettext(message),
        "handle": request.POST.get("handle", ""),
    }
    response = render_operator_page(request, "sign_in.html", context, status=status)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        response["Retry-After"] = str(_RETRY_AFTER_S)
    return response
