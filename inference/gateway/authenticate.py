"""authenticate: the presented key becomes a principal, from memory, in microseconds."""

import hmac
from typing import Final

from caret.contracts.api_key import Credential, ParsedKey, digest_key, parse_key
from caret.contracts.ip_allowlist import is_allowed
from caret.contracts.snapshot import TenantSnapshot, TenantStatus
from inference.completion.request import Principal
from inference.errors import ForbiddenRequest, UnauthenticatedRequest
from inference.gateway.snapshots.snapshot_store import SnapshotStore

_DUMMY_DIGEST: Final = bytes(32)
_CURRENT_PEPPER: Final = 1


def authenticate(
    authority: SnapshotStore, key_text: str | None, *, now_ms: int, address: str | None
) -> Principal:
    """Return the caller whom the key authenticates.

    Only a client that presents the whole key from an allowed network learns that it was revoked or
    has expired; to all others it is as invalid as any text. `address` is the client's, behind
    trusted proxies; None: it is unknown, and keys that are bound to networks are invalid.

    Raises UnauthenticatedRequest: `missing_api_key`, `invalid_api_key`, `revoked_api_key`,
    `expired_api_key`, `tenant_suspended`, and `snapshots_stale` (503) when the gateway does not
    know. Raises ForbiddenRequest: `region_not_allowed` for a tenant that is pinned elsewhere.
    """
    if not key_text:
        raise UnauthenticatedRequest(
            "missing_api_key", "Send an API key as 'Authorization: Bearer <key>'."
        )
    key = parse_key(key_text)
    if key is None:
        raise _invalid()
    if not authority.is_fresh():
        raise _stale()
    credential, snapshot = _find(authority, key)
    if not is_allowed(credential.networks, address):
        raise _invalid()
    if not authority.is_readable(snapshot.tenant_id):
        raise _stale()
    _check_in_force(credential, snapshot, now_ms)
    if snapshot.region not in (None, authority.region):
        raise ForbiddenRequest("region_not_allowed", "This tenant is served in another region.")
    return Principal(credential=credential, snapshot=snapshot)


def _invalid() -> UnauthenticatedRequest:
    return UnauthenticatedRequest("invalid_api_key", "This is not a valid API key.")


def _stale() -> UnauthenticatedRequest:
    return UnauthenticatedRequest(
        "snapshots_stale", "The gateway cannot verify keys at the moment.", http_status=503
    )


def _find(authority: SnapshotStore, key: ParsedKey) -> tuple[Credential, TenantSnapshot]:
    candidates = authority.find_credentials(key.lookup_id)
    for credential, snapshot in candidates:
        digest = digest_key(authority.derive_pepper(credential.pepper_version), key)
        if hmac.compare_digest(digest, credential.digest):
            return credential, snapshot
    if not candidates:
        # The same work as for a wrong secret, so that time does not tell which lookup ids exist.
        hmac.compare_digest(
            digest_key(authority.derive_pepper(_CURRENT_PEPPER), key), _DUMMY_DIGEST
        )
    raise _invalid()


def _check_in_force(credential: Credential, snapshot: TenantSnapshot, now_ms: int) -> None:
    if credential.revoked_at_ms is not None:
        raise UnauthenticatedRequest("revoked_api_key", "This API key was revoked.")
    if credential.expires_at_ms is not None and credential.expires_at_ms <= now_ms:
        raise UnauthenticatedRequest("expired_api_key", "This API key has expired.")
    if snapshot.status is not TenantStatus.ACTIVE:
        raise UnauthenticatedRequest("tenant_suspended", "This tenant is not active.")
