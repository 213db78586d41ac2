"""Whoever changes what customers rely on shows a code of his app first, once in ten minutes."""

import redis
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext

from console.member import client_address
from console.operators import session
from console.throttle import forget_tries, take_try
from tenants.operators.accounts import OperatorView, confirm


def unconfirmed(request: HttpRequest, operator: OperatorView) -> str | None:
    """What is wrong with the code; None: nothing, or none is needed again so soon."""
    if session.is_confirmed(request):
        return None
    counted, address = f"operator:{operator.handle}", client_address(request)
    try:
        if not take_try(email=counted, address=address):
            return gettext("Too many tries. Wait a minute, then try again.")
    except redis.RedisError:
        return gettext("Codes cannot be checked right now. Try again in a few seconds.")
    code = request.POST.get("code", "")
    if not confirm(operator_id=operator.id, code=code, now=timezone.now()):
        return gettext("This is not the present code of your app, or it was used already.")
    forget_tries(email=counted, address=address)
    session.note_confirmed(request)
    return None
