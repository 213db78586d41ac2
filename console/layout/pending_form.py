"""A form whose sender has to show first who he is: kept meanwhile, then carried on with.

Sealed, since it may hold a secret, for its sender at his tenant. One a person, the newest: who has
shown who he is is not asked for minutes, whatever his other tabs send.
"""

import secrets
from typing import Final

import msgspec
from django.conf import settings

from caret.foundation.crypto.aead import DecryptionFailed, seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from tenants.base.redis_connection import connect
from tenants.security.authorization.actor import Actor

_KEPT_S: Final = 600  # somebody types his password and finds his telephone
# An identity provider's metadata, the longest text of a form, have 200 thousand characters at most.
_MAX_BYTES: Final = 256 * 1024


class PendingForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str  # of ours, with its query
    fields: dict[str, list[str]]


def store_pending_form(actor: Actor, form: PendingForm) -> str:
    """The token under which it is found; what is too long is not kept. Raises redis.RedisError."""
    token, text = secrets.token_urlsafe(16), msgspec.json.encode(form)
    if len(text) <= _MAX_BYTES:
        sealed = seal(_key(), text, bound_to=_bound_to(actor, token))
        connect().set(_name(actor), sealed, ex=_KEPT_S)
    return token


def find_pending_form(actor: Actor, token: str) -> PendingForm | None:
    """None: it was not kept, is gone, or is another's. Raises redis.RedisError."""
    sealed = connect().get(_name(actor))
    if not isinstance(sealed, bytes):
        return None
    try:
        text = unseal(_key(), sealed, bound_to=_bound_to(actor, token))
    except DecryptionFailed:
        return None
    return msgspec.json.decode(text, type=PendingForm)


def _name(actor: Actor) -> str:
    return f"caret:pending-form:{actor.user_id}"


def _bound_to(actor: Actor, token: str) -> bytes:
    return f"kept-form/1|{actor.tenant_id}|{actor.user_id}|{token}".encode()


def _key() -> bytes:
    return derive_key(settings.ROOT_SECRET, "kept-forms/1")
