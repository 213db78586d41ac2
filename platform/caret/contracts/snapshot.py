"""The snapshot: everything that the data plane knows about a tenant, immutable and versioned.

The control plane writes it to Redis after each commit that changes it, and gateways read it:

    caret:snapshots                 hash     tenant ID -> encoded TenantSnapshot
    caret:snapshots:versions        hash     tenant ID -> version (decimal)
    caret:snapshots:changes         counter  raised by every publication; gateways poll it
    caret:snapshots:changed         channel  tenant ID; wakes gateways at once
    caret:snapshots:home-last-seen  marker   exists if the region's relay has recently reached the
                                             home region; only in regions without a control plane

Versions only grow: an older snapshot never replaces a newer one (PUBLISH_SCRIPT). If a tenant is
missing from the hash, gateways keep its last snapshot, because Redis may have lost its data. The
snapshot of a closed tenant remains, with the status `closed`.
"""

from enum import StrEnum
from typing import Final

import msgspec

from caret.contracts.api_key import Credential
from caret.contracts.policy import PolicyOverride, TenantPolicy, Tier
from caret.contracts.pricing import SpendingLimits
from caret.foundation.ids import TenantId, UserId

SNAPSHOTS: Final = "caret:snapshots"
VERSIONS: Final = "caret:snapshots:versions"
CHANGE_COUNTER: Final = "caret:snapshots:changes"
CHANGE_CHANNEL: Final = "caret:snapshots:changed"
HOME_LAST_SEEN: Final = "caret:snapshots:home-last-seen"

# KEYS: snapshots, versions, changes. ARGV: tenant ID, version, encoded snapshot, channel. Returns 1
# if the snapshot was published, 0 if Redis already had this version or a newer one.
# The counter is at least the time in microseconds. So it never has an earlier value again, not even
# after Redis lost its data or restored older data.
PUBLISH_SCRIPT: Final = """
local current = tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or '-1')
if current >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local now = redis.call('TIME')
local changes = tonumber(redis.call('GET', KEYS[3]) or '0') + 1
redis.call('SET', KEYS[3], string.format('%.0f', math.max(changes, now[1] * 1000000 + now[2])))
redis.call('PUBLISH', ARGV[4], ARGV[1])
return 1
"""


class TenantStatus(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"  # gateways reject the tenant's API keys with this reason
    # The tenant is suspended until it is closed. Members can only export and erase data.
    CLOSING = "closing"
    CLOSED = "closed"


class TenantSnapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    schema: int  # version of this struct: SCHEMA
    tenant_id: TenantId
    slug: str
    version: int  # grows with every change of the snapshot
    status: TenantStatus
    cache_epoch: int  # part of cache namespaces; a higher one empties the tenant's prefix cache
    policy: TenantPolicy
    credentials: tuple[Credential, ...]
    spending: SpendingLimits = SpendingLimits()  # added later; the default limits nothing
    # Added later, left out if empty: the policy overrides, and for each user the indexes of their
    # overrides in `overrides`. The policy itself applies to users that are not listed.
    overrides: tuple[PolicyOverride, ...] = ()
    override_indexes: dict[UserId, tuple[int, ...]] = {}
    # Added later, left out if None: the only region whose gateways serve the tenant.
    region: str | None = None
    # Added later, left out if empty: tier -> language (or ANY_LANGUAGE) -> the pool that operators
    # have assigned.
    pools: dict[Tier, dict[str, str]] = {}
    dedicated_pools: frozenset[str] = frozenset()  # assigned pools that no other tenant may use
    # Added later, left out if empty: tier -> model -> its pools, preferred ones first. It contains
    # the models of the operators' catalogue that the tenant's plan includes. The first model is the
    # default. A tier without a published model is missing.
    models: dict[Tier, dict[str, tuple[str, ...]]] = {}
    # Added later, left out if None (no trial): the Unix milliseconds from which completions are
    # refused.
    trial_ends_at_ms: int | None = None


SCHEMA: Final = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(TenantSnapshot)


def encode_snapshot(snapshot: TenantSnapshot) -> bytes:
    return _encoder.encode(snapshot)


def decode_snapshot(data: bytes) -> TenantSnapshot:
    """Decode a snapshot whose schema is SCHEMA.

    Raises msgspec.DecodeError, msgspec.ValidationError.
    """
    try:
        snapshot = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    if snapshot.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {snapshot.schema}, not {SCHEMA}")
    return snapshot
