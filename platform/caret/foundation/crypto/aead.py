"""Authenticated encryption with AES-256-GCM, bound to context.

    sealed = 12 random bytes | ciphertext | 16 bytes tag

Without the key, sealed data can be neither read nor changed nor moved. The context that it is bound
to (its tenant, its kind, its row) is not stored in it. The caller passes the same context to open
it, so data that was moved elsewhere cannot be opened. A key seals at most 2**32 times, because the
nonces are random (NIST SP 800-38D, 8.3).
"""

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES: Final = 12


class DecryptionFailed(Exception):
    """The data was sealed with another key, bound to another context, or changed."""


def seal(key: bytes, data: bytes, *, bound_to: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, data, bound_to)


def unseal(key: bytes, encrypted_data: bytes, *, bound_to: bytes) -> bytes:
    """Return the decrypted data.

    Raises DecryptionFailed.
    """
    nonce, ciphertext = encrypted_data[:_NONCE_BYTES], encrypted_data[_NONCE_BYTES:]
    try:
        return AESGCM(key).decrypt(nonce, ciphertext, bound_to)
    except (InvalidTag, ValueError) as error:  # ValueError: shorter than a nonce
        raise DecryptionFailed from error
