"""The authenticate stage: find the principal of an API key, in memory, within microseconds."""

import hmac
from types import MappingProxyType
from typing import Final

from caret.contracts.api_key import Credential, ParsedKey, digest_key, parse_key
from caret.contracts.ip_allowlist import is_allowed
from caret.contracts.snapshot import TenantSnapshot, TenantStatus
from inference.completion.request import Principal
from inference.errors import CompletionError, ForbiddenRequest, UnauthenticatedRequest
from inference.gateway.snapshots.snapshot_store import SnapshotStore

# The digests of a key in a snapshot: the current one, and during a rotation the previous one.
_MAX_DIGESTS: Final = 2
_DUMMY_DIGEST: Final = bytes(32)  # as long as a key's digest
_CURRENT_PEPPER: Final = 1  # the pepper version of new keys
_INACTIVE_MESSAGES: Final = MappingProxyType(
    {
        TenantStatus.SUSPENDED: (
            "This tenant is suspended and gets no completions. Ask an owner of the tenant to "
            "contact the operator of Caret."
        ),
        TenantStatus.CLOSING: (
            "This tenant is closing and gets no completions. If this is a mistake, ask an owner "
            "of the tenant to contact the operator of Caret."
        ),
        TenantStatus.CLOSED: "This tenant is closed. Remove this API key from your editor.",
    }
)
_TRIAL_ENDED: Final = (
    "The trial of this tenant has ended, and it gets no completions. Ask an owner of the tenant to "
    "contact the operator of Caret."
)


def authenticate(
    snapshot_store: SnapshotStore, key_text: str | None, *, now_ms: int, address: str | None
) -> Principal:
    """Return the principal of an API key.

    `address` is the client's IP address, as trusted proxies report it. None means unknown. Then a
    key that is bound to networks is invalid.

    Only callers that send the whole key from an allowed network learn that the key is revoked or
    has expired, or that its tenant gets no completions. For all other callers the key is invalid.

    The codes of UnauthenticatedRequest are `missing_api_key`, `invalid_api_key`, `revoked_api_key`,
    `expired_api_key`, `tenant_suspended` (also closing or closed), and `snapshots_stale` (503) when
    the gateway cannot verify keys. The codes of ForbiddenRequest are `trial_ended`, and
    `region_not_allowed` when the tenant is pinned to another region.

    Raises UnauthenticatedRequest, ForbiddenRequest.
    """
    if not key_text:
        raise UnauthenticatedRequest(
            "missing_api_key", "Send an API key as 'Authorization: Bearer <key>'."
        )
    key = parse_key(key_text)
    if key is None:
        raise _invalid_key_error()
    if not snapshot_store.is_fresh():
        raise _stale_snapshot_error()
    credential, snapshot = _find_credential(snapshot_store, key)
    if not is_allowed(credential.networks, address):
        raise _invalid_key_error()
    # A gateway that cannot read the tenant's newest snapshot may have missed a revocation.
    if not snapshot_store.is_readable(snapshot.tenant_id):
        raise _stale_snapshot_error()
    _check_active(credential, snapshot, now_ms)
    if snapshot.trial_ends_at_ms is not None and snapshot.trial_ends_at_ms <= now_ms:
        raise ForbiddenRequest("trial_ended", _TRIAL_ENDED)
    if snapshot.region not in (None, snapshot_store.region):
        raise ForbiddenRequest("region_not_allowed", "This tenant is served in another region.")
    return Principal(credential=credential, snapshot=snapshot)


def find_key_error(
    snapshot_store: SnapshotStore, key_text: str | None, *, now_ms: int, address: str | None
) -> CompletionError:
    """Return the error for a key that was valid earlier, when its request or connection began."""
    try:
        authenticate(snapshot_store, key_text, now_ms=now_ms, address=address)
    except CompletionError as error:
        return error
    return _invalid_key_error()  # the key has become valid again, and the client can try again


def _invalid_key_error() -> UnauthenticatedRequest:
    return UnauthenticatedRequest("invalid_api_key", "This is not a valid API key.")


def _stale_snapshot_error() -> UnauthenticatedRequest:
    return UnauthenticatedRequest(
        "snapshots_stale", "The gateway cannot verify keys at the moment.", http_status=503
    )


def _find_credential(
    snapshot_store: SnapshotStore, key: ParsedKey
) -> tuple[Credential, TenantSnapshot]:
    candidates = snapshot_store.find_credentials(key.lookup_id)
    for credential, snapshot in candidates:
        digest = digest_key(snapshot_store.derive_pepper(credential.pepper_version), key)
        if hmac.compare_digest(digest, credential.digest):
            return credential, snapshot
    # Compare as many digests for an unknown lookup ID as for a wrong secret of a key. Otherwise the
    # time would reveal which lookup IDs exist, and which keys are being rotated.
    for _ in range(_MAX_DIGESTS - len(candidates)):
        hmac.compare_digest(
            digest_key(snapshot_store.derive_pepper(_CURRENT_PEPPER), key), _DUMMY_DIGEST
        )
    raise _invalid_key_error()


def _check_active(credential: Credential, snapshot: TenantSnapshot, now_ms: int) -> None:
    if credential.revoked_at_ms is not None:
        raise UnauthenticatedRequest("revoked_api_key", "This API key was revoked.")
    if credential.expires_at_ms is not None and credential.expires_at_ms <= now_ms:
        raise UnauthenticatedRequest("expired_api_key", "This API key has expired.")
    if snapshot.status is not TenantStatus.ACTIVE:
        raise UnauthenticatedRequest("tenant_suspended", _INACTIVE_MESSAGES[snapshot.status])
