"""Formats of sealed data and wrapped keys. Pure except for random keys and nonces.

    sealed = version (1 byte) | data key's ID (16 bytes) | nonce (12) | ciphertext | tag (16)

The seal is bound to version|tenant|table|column|row|data key. Sealed data does not open if it is
moved to another tenant, table, column or row, or if its key ID is changed. A wrapped key is bound
to its own row in the same way, so a key that is moved to another tenant or scope does not open,
either. A scope, such as `user:<id>/content`, says which data the data key encrypts.
"""

import hashlib
import os
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from caret.foundation.crypto.aead import DecryptionFailed, seal, unseal
from caret.foundation.ids import TenantId

KEY_BYTES: Final = 32
FINGERPRINT_BYTES: Final = 16
_VERSION: Final = 1
_ID_BYTES: Final = 16
_HEADER_BYTES: Final = 1 + _ID_BYTES
_CANARY: Final = b"caret witness"  # never change it: the stored canaries contain it


@dataclass(frozen=True, slots=True)
class SealContext:
    """The place where sealed data is stored. The data opens only with the same context."""

    table: str  # or another store's name
    column: str
    row: str  # the row's ID

    def __post_init__(self) -> None:
        # The parts are joined with "|". Two contexts must not have the same joined text.
        assert "|" not in f"{self.table}{self.column}{self.row}"


def generate_key() -> bytes:
    return os.urandom(KEY_BYTES)


def compute_key_fingerprint(key: bytes) -> bytes:
    """Return a fingerprint that identifies a key of 256 random bits without revealing it."""
    return hashlib.sha256(b"caret key fingerprint|" + key).digest()[:FINGERPRINT_BYTES]


def seal_at(
    context: SealContext, data: bytes, *, tenant_id: TenantId, key_id: UUID, key: bytes
) -> bytes:
    """Seal data with a data key, bound to its context."""
    bound_to = _build_associated_data(context, tenant_id, key_id)
    return bytes([_VERSION]) + key_id.bytes + seal(key, data, bound_to=bound_to)


def unseal_at(context: SealContext, envelope: bytes, *, tenant_id: TenantId, key: bytes) -> bytes:
    """Open sealed data with its data key. Raises DecryptionFailed."""
    bound_to = _build_associated_data(context, tenant_id, read_data_key_id(envelope))
    return unseal(key, envelope[_HEADER_BYTES:], bound_to=bound_to)


def read_data_key_id(envelope: bytes) -> UUID:
    """Return the ID of the data key that sealed the data. Raises DecryptionFailed."""
    if len(envelope) < _HEADER_BYTES or envelope[0] != _VERSION:
        raise DecryptionFailed
    return UUID(bytes=envelope[1:_HEADER_BYTES])


def wrap_data_key(key: bytes, *, tenant_key: bytes, bound_to: str) -> bytes:
    return seal(tenant_key, key, bound_to=bound_to.encode())


def unwrap_data_key(wrapped: bytes, *, tenant_key: bytes, bound_to: str) -> bytes:
    """Unwrap a data key. Raises DecryptionFailed."""
    return unseal(tenant_key, wrapped, bound_to=bound_to.encode())


def build_tenant_key_context(tenant_id: TenantId, key_id: UUID) -> str:
    """Return the context that a wrapped tenant key is bound to."""
    return f"{_VERSION}|{tenant_id}|keyring_tenant_key|{key_id}"


def build_data_key_context(
    tenant_id: TenantId, *, scope: str, key_id: UUID, tenant_key_id: UUID
) -> str:
    """Return the context that a wrapped data key is bound to.

    The scope is the last part, because it may contain any character.
    """
    return f"{_VERSION}|{tenant_id}|keyring_data_key|{key_id}|{tenant_key_id}|{scope}"


def create_canary(key: bytes, key_id: UUID) -> bytes:
    """Seal a known text, the canary, with a data key. Caret stores it beside the wrapped key.

    After the destruction of the wrapped key, Caret tries to unwrap the key once more, and to open
    the canary with it. If either fails, the destruction succeeded: a deletion certificate states
    the result.
    """
    return seal(key, _CANARY, bound_to=key_id.bytes)


def can_open_canary(key: bytes, canary: bytes, key_id: UUID) -> bool:
    try:
        return unseal(key, canary, bound_to=key_id.bytes) == _CANARY
    except DecryptionFailed:
        return False


def _build_associated_data(context: SealContext, tenant_id: TenantId, key_id: UUID) -> bytes:
    parts = (_VERSION, tenant_id, context.table, context.column, context.row, key_id)
    return "|".join(map(str, parts)).encode()
