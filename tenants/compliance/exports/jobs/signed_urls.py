"""Signed URLs: each downloads the file of one export, for some minutes.

A URL is valid only while its creator has the permissions that the export requires. Its token:

    base64url of these fields, with their sizes in bytes:
    16 tenant ID | 16 export ID | 8 expiry, seconds since 1970 | 16 user ID, or zeros |
    8 lookup ID of the API key, or zeros | 32 HMAC-SHA-256 of the other fields
"""

import hashlib
import hmac
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from django.conf import settings

from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import LookupId, TenantId, UserId

_NOBODY: Final = UUID(int=0)
_KEY_CHARS: Final = 8  # of a lookup ID
_BODY_BYTES: Final = 16 + 16 + 8 + 16 + _KEY_CHARS
_MAC_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class SignedUrl:
    tenant_id: TenantId
    export_id: UUID
    expires_at: datetime  # to the second
    user_id: UserId | None  # the creator, or the owner of the API key; None: a key without an owner
    key: LookupId | None  # the API key that created the URL; None: a user in the console


@dataclass(frozen=True, slots=True)
class SignedUrlToken:
    token: str  # the part of the URL that sign_url returns
    expires_at: datetime


def sign_url(link: SignedUrl) -> str:
    """Return the token."""
    body = b"".join(
        (
            UUID(link.tenant_id).bytes,
            link.export_id.bytes,
            int(link.expires_at.timestamp()).to_bytes(8),
            (_NOBODY if link.user_id is None else UUID(link.user_id)).bytes,
            (link.key or "").encode().ljust(_KEY_CHARS, b"\0"),
        )
    )
    return urlsafe_b64encode(body + _compute_mac(body)).decode()


def parse_signed_url(text: str, *, now: datetime) -> SignedUrl | None:
    """Parse the token of a signed URL; None if it is invalid or expired."""
    try:
        data = b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except ValueError:
        return None
    body, mac = data[:_BODY_BYTES], data[_BODY_BYTES:]
    if len(mac) != _MAC_BYTES or not hmac.compare_digest(mac, _compute_mac(body)):
        return None
    link = _parse_body(body)
    return link if link.expires_at > now else None


def _parse_body(body: bytes) -> SignedUrl:
    """Parse the fields before the MAC. The module's docstring lists them with their sizes."""
    user_id, key = UUID(bytes=body[40:56]), body[56:].rstrip(b"\0").decode()
    return SignedUrl(
        tenant_id=TenantId(str(UUID(bytes=body[:16]))),
        export_id=UUID(bytes=body[16:32]),
        expires_at=datetime.fromtimestamp(int.from_bytes(body[32:40]), UTC),
        user_id=None if user_id == _NOBODY else UserId(str(user_id)),
        key=LookupId(key) if key else None,
    )


def _compute_mac(body: bytes) -> bytes:
    return hmac.digest(derive_key(settings.ROOT_SECRET, "export-link/1"), body, hashlib.sha256)
