"""Signed URLs for an export's file: for one export of one tenant, and for some minutes.

They are valid only while their creator has the permissions that the export requires.

    base64url of these fields, with their sizes in bytes:
    16 tenant | 16 export | 8 expiry, s since 1970 | 16 user, or zeros | 8 key, or zeros |
    32 HMAC-SHA-256 of the other fields
"""

import binascii
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
_KEY_CHARS: Final = 8
_BODY_BYTES: Final = 16 + 16 + 8 + 16 + _KEY_CHARS
_MAC_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class SignedUrl:
    tenant_id: TenantId
    export_id: UUID
    expires_at: datetime  # to the second
    user_id: UserId | None  # the user who got the URL; None: a key without an owner
    key: LookupId | None


@dataclass(frozen=True, slots=True)
class SignedUrlToken:
    token: str
    expires_at: datetime


def sign_url(link: SignedUrl) -> str:
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
    """Parse a signed URL; None if it is invalid or expired."""
    try:
        data = b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    body, mac = data[:_BODY_BYTES], data[_BODY_BYTES:]
    if len(mac) != _MAC_BYTES or not hmac.compare_digest(mac, _compute_mac(body)):
        return None
    link = _parse_body(body)
    return link if link.expires_at > now else None


def _parse_body(body: bytes) -> SignedUrl:
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
