"""Identifier types, and functions that create new identifiers."""

import os
import time
import uuid
from typing import NewType

TenantId = NewType("TenantId", str)  # canonical UUID text
UserId = NewType("UserId", str)  # canonical UUID text
KeyId = NewType("KeyId", str)  # canonical UUID text
RequestId = NewType("RequestId", str)  # canonical UUID text, version 7
LookupId = NewType("LookupId", str)  # eight base62 characters of an API key, safe to log
CacheSalt = NewType("CacheSalt", str)  # 64 hex digits; separates cache namespaces in an engine


def uuid7(*, now_ms: int | None = None) -> uuid.UUID:
    """Return a new UUID of version 7 (RFC 9562): 48 bits of Unix milliseconds, then random bits.

    `now_ms` None means the current time.
    """
    return uuid.UUID(int=_uuid7_bits(now_ms))


def new_request_id(*, now_ms: int | None = None) -> RequestId:
    """Return the text of a new UUID of version 7.

    The function takes half the time of `str(uuid7())`. Each completion calls it.
    """
    digits = f"{_uuid7_bits(now_ms):032x}"
    groups = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return RequestId("-".join(groups))


def _uuid7_bits(now_ms: int | None) -> int:
    timestamp_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    random_bits = int.from_bytes(os.urandom(10)) & 0x3FFFFFFFFFFFFFFFFFF  # 74 bits
    value = (timestamp_ms & 0xFFFFFFFFFFFF) << 80
    value |= (0x7 << 76) | ((random_bits >> 62) << 64)  # version 7, and 12 random bits
    value |= (0b10 << 62) | (random_bits & 0x3FFFFFFFFFFFFFFF)  # variant, and 62 random bits
    return value
