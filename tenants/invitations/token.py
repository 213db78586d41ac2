"""An invitation's token: it names its tenant, since who shows it has none yet.

    civ_<base64url of: 16 bytes tenant id, 32 random bytes>

Only a digest of it is kept. No slow hash: 256 random bits cannot be guessed.
"""

import binascii
import hashlib
import hmac
import secrets
import uuid
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Final

from caret.foundation.ids import TenantId

_PREFIX: Final = "civ_"
_TENANT_BYTES, _SECRET_BYTES = 16, 32


@dataclass(frozen=True, slots=True)
class InvitationToken:
    tenant_id: TenantId
    text: str = field(repr=False)


def new_token(tenant_id: TenantId) -> InvitationToken:
    data = uuid.UUID(tenant_id).bytes + secrets.token_bytes(_SECRET_BYTES)
    return InvitationToken(tenant_id, _PREFIX + urlsafe_b64encode(data).decode())


def parse_token(text: str) -> InvitationToken | None:
    """None for what is no token of ours."""
    try:
        data = b64decode(text.removeprefix(_PREFIX).encode("ascii"), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    if not text.startswith(_PREFIX) or len(data) != _TENANT_BYTES + _SECRET_BYTES:
        return None
    return InvitationToken(TenantId(str(uuid.UUID(bytes=data[:_TENANT_BYTES]))), text)


def digest_token(pepper: bytes, token: InvitationToken) -> bytes:
    return hmac.digest(pepper, token.text.encode(), hashlib.sha256)
