"""API keys: their format, and the digest with which a gateway verifies a key.

    cpk_live_Ab3dE6gH<43 base62 characters><6 base62 characters of CRC32>
    |   |    |       |                     checksum that detects typing errors before any lookup
    |   |    |       256 random bits, shown once
    |   |    lookup ID: identifies the key in logs and in the console
    |   kind
    type prefix that secret scanners search for (KEY_PATTERN)

The format follows GitHub's tokens. A fast hash is enough for the digest, because 256 random bits
cannot be guessed.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal

import msgspec

from caret.contracts.policy import Mode
from caret.foundation.ids import KeyId, LookupId, UserId

# The groups are the kind, the lookup ID, the random secret and the checksum.
KEY_PATTERN: Final = re.compile(
    r"cpk_(live|test|svc|ops)_([0-9A-Za-z]{8})([0-9A-Za-z]{43})([0-9A-Za-z]{6})"
)
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LOOKUP_CHARS, _SECRET_CHARS, _CHECKSUM_CHARS = 8, 43, 6


# The kind of operator keys, which give access to the platform API and belong to no tenant.
OPERATOR_KIND: Final = "ops"


class KeyKind(StrEnum):
    DEVELOPER = "live"
    TEST = "test"
    SERVICE = "svc"


class ParsedKey(msgspec.Struct, frozen=True):
    """A well-formed key. A key that a client sent is not verified yet."""

    text: str
    lookup_id: LookupId

    def __repr__(self) -> str:  # keeps the key out of logs and tracebacks
        return f"ParsedKey({self.lookup_id})"


class Credential(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One text of an API key in a snapshot: its digest and its restrictions.

    A revoked credential stays in the snapshot for a while, so that the gateway can tell the client
    that the key was revoked. During a rotation, a key has two credentials until its old text
    expires. They have the same key ID and lookup ID, but different digests.

    Fields with a default were added later, and are not encoded if they have their default. So an
    older gateway fails to decode only the snapshots of tenants with a credential that uses a new
    field (see ADR 0003).
    """

    key_id: KeyId
    lookup_id: LookupId
    digest: bytes  # digest_key(pepper, key), 32 bytes
    pepper_version: int  # of the pepper in the digest; see digest_key
    kind: KeyKind
    user_id: UserId | None  # None: a service key
    expires_at_ms: int | None  # Unix milliseconds; None: never
    revoked_at_ms: int | None  # Unix milliseconds; None: not revoked
    networks: tuple[str, ...] = ()  # allowed source networks (see ip_allowlist); empty: any
    modes: frozenset[Mode] | None = None  # modes that the key may request; None: all
    # The tenant allows content capture and the user has consented to it.
    keeps_content: bool = False


def generate_key(kind: KeyKind | Literal["ops"], *, lookup_id: LookupId | None = None) -> ParsedKey:
    """Create a random key, or a new text for the key with this lookup ID.

    The caller shows the text once and stores only the digest.
    """
    if lookup_id is None:
        lookup_id = LookupId("".join(secrets.choice(_ALPHABET) for _ in range(_LOOKUP_CHARS)))
    secret = _encode_base62(secrets.randbits(256), width=_SECRET_CHARS)
    body = f"cpk_{kind}_{lookup_id}{secret}"
    return ParsedKey(text=body + _compute_checksum(body), lookup_id=lookup_id)


def parse_key(text: str) -> ParsedKey | None:
    """Parse a key; return None if it is malformed or its checksum is wrong."""
    match = KEY_PATTERN.fullmatch(text)
    if match is None or _compute_checksum(text[:-_CHECKSUM_CHARS]) != match[4]:
        return None
    return ParsedKey(text=text, lookup_id=LookupId(match[2]))


def digest_key(pepper: bytes, key: ParsedKey) -> bytes:
    """Return the HMAC-SHA256 of the key's text. `pepper` is a secret of the installation."""
    digest = _make_hmac(pepper).copy()
    digest.update(key.text.encode())
    return digest.digest()


@lru_cache(maxsize=8)
def _make_hmac(pepper: bytes) -> hmac.HMAC:
    """Return an HMAC that callers must copy. Creating one takes longer than computing a digest."""
    return hmac.new(pepper, digestmod=hashlib.sha256)


def _compute_checksum(body: str) -> str:
    return _encode_base62(zlib.crc32(body.encode()), width=_CHECKSUM_CHARS)


def _encode_base62(value: int, *, width: int) -> str:
    digits = []
    for _ in range(width):
        value, digit = divmod(value, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
