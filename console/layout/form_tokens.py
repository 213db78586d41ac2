"""Single-use form tokens: a page reload must not create the same thing twice.

A token is signed and not stored, so each browser tab has its own. Redis remembers a used token for
as long as it would be valid.
"""

import secrets
from typing import Final

from django.core import signing
from django.http import HttpRequest

from tenants.base.redis_connection import connect_to_redis

FIELD: Final = "form_token"
_LIFETIME_S: Final = 24 * 3600  # a tab may stay open overnight


def issue_form_token(request: HttpRequest, purpose: str) -> str:
    """Return a single-use token for FIELD, valid only for the signed-in user."""
    return _signer_for(request, purpose).sign(secrets.token_urlsafe(12))


def consume_form_token(request: HttpRequest, purpose: str) -> bool:
    """Use up the form's token. Return False if it was used, has expired or is invalid.

    The token of another user or purpose is invalid, too. Raises redis.RedisError.
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
