"""The secrets of a key: the current one, and after a rotation the previous one for some time."""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings

from caret.contracts.api_key import ParsedKey, digest_key
from caret.foundation.crypto.key_derivation import derive_key
from tenants.models import ApiKey

_MAX_SECRETS: Final = 2  # of a key: the current one, and during a rotation the previous one
_NO_DIGEST: Final = bytes(32)  # matches no key
_DUMMY_PEPPER_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class KeySecret:
    digest: bytes
    pepper_version: int
    expires_at: datetime | None  # None: never
    is_superseded: bool = False  # True: the previous secret, which a rotation has replaced


def list_secrets(row: ApiKey) -> list[KeySecret]:
    """Return the key's secrets, the current one first."""
    key_secrets = [KeySecret(bytes(row.digest), row.pepper_version, row.expires_at)]
    if row.previous_digest is not None:
        assert row.previous_pepper_version is not None
        assert row.previous_ends_at is not None
        end_times = [end for end in (row.previous_ends_at, row.expires_at) if end is not None]
        digest = bytes(row.previous_digest)
        key_secrets.append(
            KeySecret(digest, row.previous_pepper_version, min(end_times), is_superseded=True)
        )
    return key_secrets


def match_secret(key: ParsedKey, rows: Iterable[ApiKey]) -> tuple[ApiKey, KeySecret] | None:
    """Return the row and the secret that match a presented key, or None.

    All secrets are compared. Dummies are added up to `_MAX_SECRETS` comparisons, so the number of
    comparisons does not reveal whether a key with this lookup ID exists or is being rotated.
    """
    candidates = [(row, secret) for row in rows for secret in list_secrets(row)]
    match = None
    for row, secret in candidates:
        if has_digest(key, digest=secret.digest, pepper_version=secret.pepper_version):
            match = (row, secret)
    for _ in range(_MAX_SECRETS - len(candidates)):
        has_digest(key, digest=_NO_DIGEST, pepper_version=_DUMMY_PEPPER_VERSION)
    return match


def compute_key_digest(key: ParsedKey, *, pepper_version: int) -> bytes:
    """Return the digest of a key. Each version derives another pepper from the root secret."""
    return digest_key(derive_key(settings.ROOT_SECRET, f"key-pepper/{pepper_version}"), key)


def has_digest(key: ParsedKey, *, digest: bytes, pepper_version: int) -> bool:
    return hmac.compare_digest(compute_key_digest(key, pepper_version=pepper_version), digest)
