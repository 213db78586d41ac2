"""Authenticated encryption with AES-256-GCM, bound to a context.

    sealed data = nonce (12 random bytes) | ciphertext | tag (16 bytes)

Reading sealed data needs the key, and a change of one bit makes the data unreadable. The data is
bound to a context, such as its tenant, kind and row. The context is not stored in the sealed data.
Unsealing needs the same context, so data that was copied to another row cannot be read.
Use one key for at most 2**32 calls of `seal`, because the nonces are random (NIST SP 800-38D, 8.3).
"""

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES: Final = 12


class DecryptionFailed(Exception):
    """The data was sealed with another key, bound to another context, or changed."""


def seal(key: bytes, data: bytes, *, bound_to: bytes) -> bytes:
    """Return `data` sealed with a key of 32 bytes; `bound_to` is the context."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, data, bound_to)


def unseal(key: bytes, sealed_data: bytes, *, bound_to: bytes) -> bytes:
    """Return the plain data of sealed data.

    Raises DecryptionFailed.
    """
    nonce, ciphertext_and_tag = sealed_data[:_NONCE_BYTES], sealed_data[_NONCE_BYTES:]
    try:
        return AESGCM(key).decrypt(nonce, ciphertext_and_tag, bound_to)
    except (InvalidTag, ValueError) as error:  # ValueError: shorter than a nonce
        raise DecryptionFailed from error
