"""The snapshot: all that the data plane knows of a tenant, immutable and versioned.

The control plane writes it to Redis after each commit that changes it, gateways read it. In Redis:

    caret:snapshots            hash    tenant id -> encoded TenantSnapshot
    caret:snapshots:versions   hash    tenant id -> version (decimal)
    caret:snapshots:changes    counter raised by every publication; what gateways poll
    caret:snapshots:changed    channel tenant id; what wakes gateways at once
    caret:snapshots:home-last-seen marker  in a region with a relay: home was heard, lately enough

Versions only grow: an older snapshot never replaces a newer one (PUBLISH_SCRIPT). A tenant that is
missing from the hash is not gone, Redis may have lost its memory: closing one is a status.
"""

from enum import StrEnum
from typing import Final

import msgspec

from caret.contracts.api_key import Credential
from caret.contracts.policy import PolicyOverride, TenantPolicy
from caret.contracts.pricing import SpendingLimits
from caret.foundation.ids import TenantId, UserId

SNAPSHOTS: Final = "caret:snapshots"
VERSIONS: Final = "caret:snapshots:versions"
CHANGES: Final = "caret:snapshots:changes"
CHANGED: Final = "caret:snapshots:changed"
HOME_HEARD: Final = "caret:snapshots:home-last-seen"

# KEYS: snapshots, versions, changes. ARGV: tenant id, version, encoded snapshot, channel.
# Returns 1 when it was published, 0 when Redis already held this version or a newer one.
PUBLISH_SCRIPT: Final = """
local held = tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or '-1')
if held >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('INCR', KEYS[3])
redis.call('PUBLISH', ARGV[4], ARGV[1])
return 1
"""


class TenantStatus(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"  # keys are known and refused
    CLOSING = "closing"  # suspended for good: its people export and erase, nothing else
    CLOSED = "closed"


class TenantSnapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    schema: int  # of this struct: 1
    tenant_id: TenantId
    slug: str
    version: int  # grows with every change of the tenant's policy or keys
    status: TenantStatus
    cache_epoch: int  # raising it empties the tenant's prefix cache
    policy: TenantPolicy
    credentials: tuple[Credential, ...]
    spending: SpendingLimits = SpendingLimits()  # came later: without it nothing is bounded
    # Came later, and left out where there are none: what narrows the policy, and for which users,
    # by their places. A user who is not here has the policy as it is.
    layers: tuple[PolicyOverride, ...] = ()
    layers_of: dict[UserId, tuple[int, ...]] = {}
    # Came later, and left out where nobody is pinned: the only region whose gateways serve it.
    region: str | None = None


SCHEMA: Final = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(TenantSnapshot)


def encode_snapshot(snapshot: TenantSnapshot) -> bytes:
    return _encoder.encode(snapshot)


def decode_snapshot(data: bytes) -> TenantSnapshot:
    """Raises msgspec.DecodeError, ValidationError included, for no snapshot of this schema."""
    try:
        snapshot = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    if snapshot.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {snapshot.schema}, not {SCHEMA}")
    return snapshot
