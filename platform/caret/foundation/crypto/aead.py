"""Seals data with AES-256-GCM, so that who lacks the key can neither read nor change nor move it.

    sealed = 12 random bytes | ciphertext | 16 bytes tag

What a seal is bound to (its tenant, its kind, its row) is no part of it: it has to be known again
to open it, so a seal that was moved elsewhere does not open. A key seals at most 2**32 times: the
nonces are random (NIST SP 800-38D, 8.3).
"""

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES: Final = 12


class DecryptionFailed(Exception):
    """It was sealed with another key, bound to something else, or changed."""


def seal(key: bytes, data: bytes, *, bound_to: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, data, bound_to)


def unseal(key: bytes, sealed: bytes, *, bound_to: bytes) -> bytes:
    """Raises DecryptionFailed."""
    nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        return AESGCM(key).decrypt(nonce, ciphertext, bound_to)
    except (InvalidTag, ValueError) as error:  # ValueError: shorter than a nonce
        raise DecryptionFailed from error
