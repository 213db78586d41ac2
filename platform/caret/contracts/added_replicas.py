"""Replicas that operators have added to pools while gateways run.

The control plane writes these replicas to Redis, and gateways read the changes:

    caret:added-replicas           hash     "POOL REPLICA" (host:port) -> encoded ReplicaChange
    caret:added-replicas:version   counter  incremented by each change; gateways poll it
    caret:added-replicas:changed   channel  the new version, sent to gateways at once
    caret:added-replicas:log       list     encoded ReplicaChange, newest first, of limited length

Prompts are sent to added replicas. So the pools file of each gateway lists the hosts at which
replicas may be added (`additions_from`). A missing version means that Redis has lost its data:
gateways keep the replicas that they know.
"""

from typing import Final

import msgspec

# Redis keys and the channel.
ADDITIONS: Final = "caret:added-replicas"
ADDITIONS_VERSION: Final = "caret:added-replicas:version"
ADDITIONS_CHANGED: Final = "caret:added-replicas:changed"
ADDITIONS_LOG: Final = "caret:added-replicas:log"
# Suffix decoding is not allowed for added replicas. It needs an engine setting that only the pools
# file can confirm.
ALLOWED_SPECULATION: Final = ("ngram", "draft")


class ReplicaChange(msgspec.Struct, frozen=True):
    """An operator's change to the added replicas of a pool.

    Unknown fields of a newer version are ignored. Otherwise, a replica would be lost during an
    upgrade.
    """

    schema: int  # version of this struct (SCHEMA)
    pool: str  # name
    url: str  # http(s)://host:port
    is_added: bool  # False: the replica was removed again
    operator: str  # the operator's handle (sign-in name)
    reason: str  # as the operator wrote it
    at_ms: int  # Unix milliseconds
    kv_events: str | None = None  # tcp://host:port; None: the replica does not publish KV events
    speculation: str | None = None  # one of ALLOWED_SPECULATION; None: no speculative decoding


SCHEMA: Final = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ReplicaChange)


def encode_replica_change(change: ReplicaChange) -> bytes:
    return _encoder.encode(change)


def decode_replica_change(data: bytes) -> ReplicaChange:
    """Decode a change of this schema.

    Raises msgspec.DecodeError, msgspec.ValidationError.
    """
    try:
        change = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    if change.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {change.schema}, not {SCHEMA}")
    return change
