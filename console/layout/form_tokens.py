"""Forms that make one thing each: a reload of the page that shows it must not make another.

A form's token is signed, and kept nowhere: each tab has its own. That one was used is kept in Redis
for as long as it would be good.
"""

import secrets
from typing import Final

from django.core import signing
from django.http import HttpRequest

from tenants.base.redis_connection import connect

FIELD: Final = "form_token"
_GOOD_S: Final = 24 * 3600  # a tab stays open over night


def issue_form_token(request: HttpRequest, what: str) -> str:
    """A token for the form's FIELD, good once, for whoever is signed in."""
    return _signer(request, what).sign(secrets.token_urlsafe(12))


def consume_form_token(request: HttpRequest, what: str) -> bool:
    """False for a form that was used already, is a day old, or another's. Raises
    redis.RedisError."""
    try:
        token = _signer(request, what).unsign(request.POST.get(FIELD, ""), max_age=_GOOD_S)
    except signing.BadSignature:
        return False
    return bool(connect().set(f"caret:form-token:{token}", 1, nx=True, ex=_GOOD_S))


def _signer(request: HttpRequest, what: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"form/1|{what}|{request.user.pk}")
