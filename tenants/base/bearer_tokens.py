"""Bearer tokens for invitations and SCIM. Each contains the ID of its tenant.

    civ_<base64url of: 16 bytes tenant id, 32 random bytes>

So a token can be looked up inside its tenant's scope before the caller is known. The prefix tells
the kind of token, and lets secret scanners find it. Only a digest of a token is stored. The digest
needs no slow hash, because nobody can guess 256 random bits.
"""

import hashlib
import hmac
import secrets
import uuid
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from django.conf import settings

from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import TenantId

_TENANT_BYTES, _SECRET_BYTES = 16, 32
_PEPPER_PURPOSE: Final = "token-pepper/1"  # see derive_key


class BearerTokenKind(StrEnum):
    INVITATION = "civ_"
    SCIM = "csc_"


@dataclass(frozen=True, slots=True)
class TenantToken:
    kind: BearerTokenKind
    tenant_id: TenantId
    text: str = field(repr=False)  # the whole token, a secret


def create_token(kind: BearerTokenKind, tenant_id: TenantId) -> TenantToken:
    data = uuid.UUID(tenant_id).bytes + secrets.token_bytes(_SECRET_BYTES)
    return TenantToken(kind, tenant_id, kind + urlsafe_b64encode(data).decode())


def parse_token(kind: BearerTokenKind, token_text: str) -> TenantToken | None:
    """Parse a token, or return None if the text is not a token of this kind."""
    try:
        data = b64decode(
            token_text.removeprefix(kind).encode("ascii"), altchars=b"-_", validate=True
        )
    except ValueError:
        return None
    if not token_text.startswith(kind) or len(data) != _TENANT_BYTES + _SECRET_BYTES:
        return None
    return TenantToken(kind, TenantId(str(uuid.UUID(bytes=data[:_TENANT_BYTES]))), token_text)


def token_digest(token: TenantToken) -> bytes:
    """Return the digest that is stored. It depends on the root secret."""
    pepper = derive_key(settings.ROOT_SECRET, _PEPPER_PURPOSE)
    return hmac.digest(pepper, token.text.encode(), hashlib.sha256)
