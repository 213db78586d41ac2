"""Derivation of cryptographic keys from the root secret. Derived keys are not stored.

The root secret is 32 bytes as 64 hex digits. It is in the environment or in a file, never in a
database. HKDF-SHA-256 (RFC 5869) derives a separate key for each purpose. One derived key reveals
neither another one nor the root secret.
"""

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from caret.foundation.environment import BadSetting

ROOT_SECRET_BYTES = 32


def parse_root_secret(text: str) -> bytes:
    """Parse the root secret.

    Raises BadSetting unless `text` is 64 hex digits.
    """
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != ROOT_SECRET_BYTES:
        raise BadSetting("CARET_ROOT_SECRET must be 64 hex digits (32 random bytes).")
    return secret


def derive_key(root_secret: bytes, purpose: str) -> bytes:
    """Return the key of 32 bytes for `purpose`, such as "key-pepper/1" or "namespace/<tenant>"."""
    return HKDF(
        algorithm=hashes.SHA256(), length=32, salt=None, info=b"caret/" + purpose.encode()
    ).derive(root_secret)
