"""A form that is stored while its sender reauthenticates, and is then submitted again.

It may contain a secret, so it is encrypted and bound to its sender and their tenant. Only the
newest form of a user is stored. This is enough: after the user has reauthenticated, none of their
forms requires another reauthentication for minutes.
"""

import secrets
from typing import Final

import msgspec
from django.conf import settings

from caret.foundation.crypto.aead import DecryptionFailed, seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from tenants.base.redis_connection import connect_to_redis
from tenants.security.authorization.actor import Actor

_LIFETIME_S: Final = 600  # enough to type a password and find a phone
# The longest text of a form is an identity provider's metadata: 200,000 characters at most.
_MAX_BYTES: Final = 256 * 1024


class PendingForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str  # a path of the console, with its query
    fields: dict[str, list[str]]


def store_pending_form(actor: Actor, form: PendingForm) -> str:
    """Store the form and return its token. A form of more than _MAX_BYTES is not stored.

    Raises redis.RedisError.
    """
    token, encoded = secrets.token_urlsafe(16), msgspec.json.encode(form)
    if len(encoded) <= _MAX_BYTES:
        ciphertext = seal(_encryption_key(), encoded, bound_to=_binding_of(actor, token))
        connect_to_redis().set(_cache_key(actor), ciphertext, ex=_LIFETIME_S)
    return token


def find_pending_form(actor: Actor, token: str) -> PendingForm | None:
    """Return the form; None for another user or tenant, and if it is not stored.

    A form is stored until it expires or the user submits another one. Raises redis.RedisError.
    """
    ciphertext = connect_to_redis().get(_cache_key(actor))
    if not isinstance(ciphertext, bytes):
        return None
    try:
        encoded = unseal(_encryption_key(), ciphertext, bound_to=_binding_of(actor, token))
    except DecryptionFailed:
        return None
    return msgspec.json.decode(encoded, type=PendingForm)


def _cache_key(actor: Actor) -> str:
    return f"caret:pending-form:{actor.user_id}"


def _binding_of(actor: Actor, token: str) -> bytes:
    return f"pending-form/1|{actor.tenant_id}|{actor.user_id}|{token}".encode()


def _encryption_key() -> bytes:
    return derive_key(settings.ROOT_SECRET, "pending-form/1")
