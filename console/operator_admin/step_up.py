"""Step-up of an operator before changes that affect customers: an authenticator code.

After a code, further changes need none for ten minutes.
"""

from collections.abc import Callable
from typing import Final

import redis
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext

from console.limits.throttling import Secret, count_attempt, forgive_attempt
from console.operator_admin import session
from console.sign_in.devices import build_attempt
from console.texts.error_messages import translate_error
from tenants.base.errors import DomainError
from tenants.fleet.operators.accounts import OperatorView, verify_operator_code

_BAD_REQUEST: Final = 400
Apply = Callable[[HttpRequest, OperatorView], None]  # raises DomainError
RenderError = Callable[[HttpRequest, str], HttpResponse]  # the page, with the error


def change_with_code(
    request: HttpRequest, operator: OperatorView, apply: Apply, *, done_url: str, page: RenderError
) -> HttpResponse:
    """Check the operator's role and code, apply the form, and redirect to `done_url`.

    An error shows the page again, with what the operator entered.
    """
    if not operator.can_change:
        raise PermissionDenied
    error = check_code(request, operator)
    if error is None:
        try:
            apply(request, operator)
        except DomainError as refusal:
            error = translate_error(refusal)
    if error is None:
        return redirect(done_url)
    response = page(request, error)
    response.status_code = _BAD_REQUEST
    return response


def check_code(request: HttpRequest, operator: OperatorView) -> str | None:
    """Check the submitted code. Return an error message; None if it is right or not needed."""
    if session.is_confirmed(request):
        return None
    try:
        attempt = build_attempt(request, Secret.CODE, f"operator:{operator.handle}")
        if (throttle := count_attempt(attempt)) is not None:
            return throttle.message
        code = request.POST.get("code", "")
        if not verify_operator_code(operator_id=operator.id, code=code, now=timezone.now()):
            return gettext(
                "This code is wrong, expired or already used. Enter the current code from your app."
            )
        forgive_attempt(attempt)
    except redis.RedisError:
        return gettext("We cannot check codes right now. Try again in a few seconds.")
    session.record_confirmation(request)
    return None
