"""API keys: their format, and the digest by which a gateway knows one.

    cpk_live_Ab3dE6gH<43 base62 characters><6 base62 characters of CRC32>
    |   |    |       |                     catches typing errors before any lookup
    |   |    |       256 random bits, shown once
    |   |    lookup id: names the key in logs and in the console
    |   kind
    type prefix, by which secret scanners find it (KEY_PATTERN)

Source: GitHub's token format. No slow hash: 256 random bits cannot be guessed.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from enum import StrEnum
from typing import Final

import msgspec

from caret.foundation.ids import KeyId, LookupId, UserId

KEY_PATTERN: Final = re.compile(
    r"cpk_(live|test|svc)_([0-9A-Za-z]{8})([0-9A-Za-z]{43})([0-9A-Za-z]{6})"
)
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LOOKUP_CHARS, _SECRET_CHARS, _CHECKSUM_CHARS = 8, 43, 6


class KeyKind(StrEnum):
    DEVELOPER = "live"
    TEST = "test"
    SERVICE = "svc"


class PresentedKey(msgspec.Struct, frozen=True):
    """A key as a client sent it: well-formed, not yet known to be good."""

    text: str
    lookup_id: LookupId

    def __repr__(self) -> str:  # a key must not reach a log by way of a traceback
        return f"PresentedKey({self.lookup_id})"


class Credential(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key as a gateway knows it. Revoked ones stay for a while, to be refused by name."""

    key_id: KeyId
    lookup_id: LookupId
    digest: bytes  # digest_key(pepper, key), 32 bytes
    pepper_version: int
    kind: KeyKind
    user_id: UserId | None  # None: a service key
    expires_at_ms: int | None  # Unix milliseconds; None: never
    revoked_at_ms: int | None  # Unix milliseconds; None: in force


def generate_key(kind: KeyKind) -> PresentedKey:
    """A new random key. The caller shows its text once and stores the digest."""
    lookup_id = "".join(secrets.choice(_ALPHABET) for _ in range(_LOOKUP_CHARS))
    secret = _base62(secrets.randbits(256), width=_SECRET_CHARS)
    body = f"cpk_{kind}_{lookup_id}{secret}"
    return PresentedKey(text=body + _checksum(body), lookup_id=LookupId(lookup_id))


def parse_key(text: str) -> PresentedKey | None:
    """None when `text` is not a well-formed key with a right checksum."""
    match = KEY_PATTERN.fullmatch(text)
    if match is None or _checksum(text[:-_CHECKSUM_CHARS]) != match[4]:
        return None
    return PresentedKey(text=text, lookup_id=LookupId(match[2]))


def digest_key(pepper: bytes, key: PresentedKey) -> bytes:
    return hmac.digest(pepper, key.text.encode(), hashlib.sha256)


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), width=_CHECKSUM_CHARS)


def _base62(value: int, *, width: int) -> str:
    digits = []
    for _ in range(width):
        value, digit = divmod(value, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
