"""Signing in and out, and choosing a tenant."""

from typing import Final

import redis
import structlog
from django.contrib.auth import login, logout
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from caret.foundation.ids import TenantId
from console.member import Member, choose_tenant, client_address, for_members
from console.password_checks import Busy, check_password
from console.throttle import WINDOW_S, forget_tries, take_try

logger = structlog.get_logger(__name__)

WRONG: Final = "This e-mail address and password do not belong together."
TOO_MANY: Final = f"Too many tries. Wait {WINDOW_S} seconds, then try again."
BUSY: Final = "Too many people are signing in right now. Wait a few seconds, then try again."
UNAVAILABLE: Final = "Signing in is not possible right now: Redis does not answer."
_RETRY_AFTER_S: Final = {429: WINDOW_S, 503: 5}


@require_http_methods(["GET", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    target = _safe_target(request)
    if request.method == "GET":
        if request.user.is_authenticated:
            return redirect(target)
        return _page(request, target)
    email, password = request.POST.get("email", ""), request.POST.get("password", "")
    address = client_address(request)
    try:
        if not take_try(email=email, address=address):
            logger.warning("sign_in.throttled", address=address)
            return _page(request, target, TOO_MANY, 429)
        user = check_password(request, email=email, password=password)
        if user is None:
            return _page(request, target, WRONG, 400)
        forget_tries(email=email, address=address)
    except redis.RedisError:
        return _page(request, target, UNAVAILABLE, 503)
    except Busy:
        return _page(request, target, BUSY, 503)
    login(request, user)
    return redirect(target)


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


def _page(request: HttpRequest, target: str, message: str = "", status: int = 200) -> HttpResponse:
    context = {"next": target, "message": message, "email": request.POST.get("email", "")}
    response = render(request, "console/sign_in.html", context, status=status)
    if status in _RETRY_AFTER_S:
        response["Retry-After"] = str(_RETRY_AFTER_S[status])
    return response


def _safe_target(request: HttpRequest) -> str:
    target = request.POST.get("next") or request.GET.get("next") or "/"
    allowed = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if allowed else "/"
