"""Single-use form tokens: a form that is sent twice must not create two objects.

A new token is signed, but not stored, so several browser tabs can have one each. Only a used token
is stored: Redis remembers it until its signature has expired.
"""

import secrets
from typing import Final

from django.core import signing
from django.http import HttpRequest

from tenants.base.redis_connection import connect_to_redis

FIELD: Final = "form_token"
_LIFETIME_S: Final = 24 * 3600  # a tab may stay open overnight


def issue_form_token(request: HttpRequest, purpose: str) -> str:
    """Return a token for the form's field FIELD, valid only for the signed-in user.

    `purpose` names the form.
    """
    return _signer_for(request, purpose).sign(secrets.token_urlsafe(12))


def consume_form_token(request: HttpRequest, purpose: str) -> bool:
    """Use up the token of the submitted form.

    Return False if it was used before, has expired or is invalid. The token of another user or
    purpose is invalid. Raises redis.RedisError.
    """
    try:
        token = _signer_for(request, purpose).unsign(
            request.POST.get(FIELD, ""), max_age=_LIFETIME_S
        )
    except signing.BadSignature:
        return False
    return bool(connect_to_redis().set(f"caret:form-token:{token}", 1, nx=True, ex=_LIFETIME_S))


def _signer_for(request: HttpRequest, purpose: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"form/1|{purpose}|{request.user.pk}")
