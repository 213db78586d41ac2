"""Step-up of an operator before changes that affect customers: an authenticator code.

After a code, further changes need none for ten minutes.
"""

import redis
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext

from console.limits.throttling import Secret, count_attempt, forgive_attempt
from console.operator_admin import session
from console.sign_in.devices import build_attempt
from tenants.fleet.operators.accounts import OperatorView, verify_operator_code


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
