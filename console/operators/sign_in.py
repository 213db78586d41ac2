"""Operators sign in: handle, password and a code of their app, all three at once."""

from typing import Final

import redis
import structlog
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from console.member import client_address
from console.operators import session
from console.operators.site import page
from console.password_checks import Busy, checking_place
from console.throttle import WINDOW_S, forget_tries, take_try
from tenants.operators.accounts import authenticate

logger = structlog.get_logger(__name__)

WRONG: Final = gettext_noop("Handle, password and code do not belong together.")
TOO_MANY: Final = gettext_noop("Too many tries. Wait a minute, then try again.")
UNAVAILABLE: Final = gettext_noop(
    "Signing in is not possible right now. Try again in a few seconds."
)
_RETRY_AFTER_S: Final = {429: WINDOW_S, 503: 5}


@never_cache
@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    if request.method == "GET":
        signed_in = session.operator_of(request) is not None
        return redirect("operators:index") if signed_in else _form(request)
    try:
        return _tried(request)
    except (redis.RedisError, Busy):
        return _form(request, UNAVAILABLE, 503)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    session.end(request)
    return redirect("operators:login")


def _tried(request: HttpRequest) -> HttpResponse:
    """Raises redis.RedisError, Busy."""
    handle, address = request.POST.get("handle", "").strip(), client_address(request)
    counted = f"operator:{handle}"
    if not take_try(email=counted, address=address):
        logger.warning("operator.throttled", address=address)
        return _form(request, TOO_MANY, 429)
    with checking_place():
        operator = authenticate(
            handle=handle,
            password=request.POST.get("password", ""),
            code=request.POST.get("code", ""),
            now=timezone.now(),
        )
    if operator is None:
        logger.warning("operator.refused", address=address)
        return _form(request, WRONG, 400)
    forget_tries(email=counted, address=address)
    session.begin(request, operator)
    logger.info("operator.signed_in", operator=operator.handle, address=address)
    return redirect("operators:index")


def _form(request: HttpRequest, message: str = "", status: int = 200) -> HttpResponse:
    context = {
        "title": gettext("Sign in"),
        "message": gettext(message),
        "handle": request.POST.get("handle", ""),
    }
    response = page(request, "sign_in.html", context, status=status)
    if status in _RETRY_AFTER_S:
        response["Retry-After"] = str(_RETRY_AFTER_S[status])
    return response
