"""The page on which a member confirms the sign-in of an editor (RFC 8628, section 3.3)."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from console.layout.htmx import render_page
from console.limits.throttling import count_device_code, forgive_device_code
from console.sign_in.current_member import CurrentMember, client_address, member_required
from console.texts.error_messages import translate_error
from tenants.base.errors import Conflict, Forbidden, NotFound
from tenants.identity.own_keys.device_requests import (
    confirm_device_request,
    deny_device_request,
    open_device_request,
)

_DENY = "deny"  # value of the button; the other button confirms
_MAX_CODE_CHARS = 40  # far more than a code has, also with spaces and hyphens


@require_http_methods(["GET", "POST"])
@member_required
def device(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Show the editor's request that has the entered code. On a POST, confirm or deny it.

    Raises redis.RedisError, which RedisErrorMiddleware handles.
    """
    fields = request.GET if request.method == "GET" else request.POST
    code = fields.get("code", "").strip()[:_MAX_CODE_CHARS]
    if not code:
        return _render_page(request, member)
    user_id = str(request.user.pk)
    throttle = count_device_code(user_id=user_id, address=client_address(request))
    if throttle is not None:
        response = _render_page(request, member, error=throttle.message, status=429)
        response["Retry-After"] = str(throttle.wait_s)
        return response
    try:
        device_request = open_device_request(actor=member.actor, user_code=code, now=timezone.now())
    except NotFound as error:
        return _render_page(request, member, error=translate_error(error), code=code, status=404)
    forgive_device_code(user_id=user_id)  # only wrong codes count towards the user's limit
    if request.method == "GET":
        return _render_page(request, member, device_request=device_request)
    # The page showed a tenant. The API key must not be created in another one.
    if request.POST.get("tenant") != member.actor.tenant_id:
        error_text = gettext("You have since switched to another tenant. Check the request again.")
        return _render_page(
            request, member, device_request=device_request, error=error_text, status=409
        )
    try:
        return _decide(request, member, device_request.user_code)
    except (Conflict, Forbidden, NotFound) as error:
        error_text = translate_error(error)
        return _render_page(
            request, member, device_request=device_request, error=error_text, status=400
        )


def _decide(request: HttpRequest, member: CurrentMember, user_code: str) -> HttpResponse:
    """Confirm or deny the editor's request. Raises Conflict, Forbidden, NotFound."""
    if request.POST.get("decision") == _DENY:
        deny_device_request(actor=member.actor, user_code=user_code, now=timezone.now())
        return redirect(f"{reverse('console:device')}?done=denied")
    confirm_device_request(actor=member.actor, user_code=user_code, now=timezone.now())
    return redirect(f"{reverse('console:device')}?done=confirmed")


def _render_page(
    request: HttpRequest,
    member: CurrentMember,
    *,
    device_request: object = None,
    error: str = "",
    code: str = "",
    status: int = 200,
) -> HttpResponse:
    done = request.GET.get("done", "")  # the user's decision, after the redirect
    context = {
        "device_request": device_request,
        "error": error,
        "code": code,
        "is_confirmed": done == "confirmed",
        "is_denied": done == "denied",
    }
    return render_page(
        request, member, "console/device_sign_in/detail.html", context, status=status
    )
