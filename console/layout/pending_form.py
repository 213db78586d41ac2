"""A form that is stored while its user reauthenticates, and is then submitted again.

The form may contain a secret. It is therefore encrypted, and bound to its user and their tenant.

Only the newest form of a user is stored. This is enough: once the user has reauthenticated, no
other form of theirs needs another reauthentication for some minutes.
"""

import secrets
from typing import Final

import msgspec
from django.conf import settings

from caret.foundation.crypto.aead import DecryptionFailed, seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from tenants.base.redis_connection import connect_to_redis
from tenants.security.authorization.actor import Actor

_LIFETIME_S: Final = 600  # enough time to type a password, or to find a phone and type a code
# The longest text in a form is the metadata of an identity provider: 200,000 characters at most.
_MAX_BYTES: Final = 256 * 1024


class PendingForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str  # the path and query to which the form is submitted
    fields: dict[str, list[str]]  # values by field name, without the CSRF token


def store_pending_form(actor: Actor, form: PendingForm) -> str:
    """Store the form and return its token.

    A form of more than _MAX_BYTES is not stored, so its token finds no form. Raises
    redis.RedisError.
    """
    token, encoded = secrets.token_urlsafe(16), msgspec.json.encode(form)
    if len(encoded) <= _MAX_BYTES:
        ciphertext = seal(_encryption_key(), encoded, bound_to=_binding_of(actor, token))
        connect_to_redis().set(_redis_key(actor), ciphertext, ex=_LIFETIME_S)
    return token


def find_pending_form(actor: Actor, token: str) -> PendingForm | None:
    """Return the form; None if it is not stored, or belongs to another user or tenant.

    A form is stored until it expires, or until another form of the user is stored. Raises
    redis.RedisError.
    """
    ciphertext = connect_to_redis().get(_redis_key(actor))
    if not isinstance(ciphertext, bytes):
        return None
    try:
        encoded = unseal(_encryption_key(), ciphertext, bound_to=_binding_of(actor, token))
    except DecryptionFailed:
        return None
    return msgspec.json.decode(encoded, type=PendingForm)


def _redis_key(actor: Actor) -> str:
    return f"caret:pending-form:{actor.user_id}"


def _binding_of(actor: Actor, token: str) -> bytes:
    return f"pending-form/1|{actor.tenant_id}|{actor.user_id}|{token}".encode()


def _encryption_key() -> bytes:
    return derive_key(settings.ROOT_SECRET, "pending-form/1")
