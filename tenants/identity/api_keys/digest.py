"""Digests of key texts, as the database stores them."""

import hmac

from django.conf import settings

from caret.contracts.api_key import ParsedKey, digest_key
from caret.foundation.crypto.key_derivation import derive_key


def key_digest(key: ParsedKey, *, pepper_version: int) -> bytes:
    return digest_key(derive_key(settings.ROOT_SECRET, f"key-pepper/{pepper_version}"), key)


def matches(key: ParsedKey, *, digest: bytes, pepper_version: int) -> bool:
    return hmac.compare_digest(key_digest(key, pepper_version=pepper_version), digest)
