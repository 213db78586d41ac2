"""Replicas that operators have added to pools while gateways run.

The control plane writes them to Redis, and gateways follow the changes:

    caret:added-replicas           hash     "POOL REPLICA" (host:port) -> encoded ReplicaChange
    caret:added-replicas:version   counter  incremented by each change; gateways poll it
    caret:added-replicas:changed   channel  the version; wakes gateways at once
    caret:added-replicas:log       list     encoded ReplicaChange, newest first, of bounded length

Prompts are sent to added replicas. So the gateway's own pools file decides on which hosts replicas
may be added. A missing version means that Redis has lost its data: gateways keep the replicas that
they know.
"""

from typing import Final

import msgspec

ADDITIONS: Final = "caret:added-replicas"
ADDITIONS_VERSION: Final = "caret:added-replicas:version"
ADDITIONS_CHANGED: Final = "caret:added-replicas:changed"
ADDITIONS_LOG: Final = "caret:added-replicas:log"
# Suffix decoding is not allowed here: it needs an engine setting that only the pools file can
# guarantee.
SPECULATION: Final = ("ngram", "draft")


class ReplicaChange(msgspec.Struct, frozen=True):
    """An operator's change to the added replicas of a pool.

    Fields that only a newer version knows are ignored. Otherwise an upgrade would lose a replica.
    """

    schema: int  # of this struct: 1
    pool: str
    url: str  # http(s)://host:port
    is_added: bool  # False: the replica was removed again
    operator: str  # the operator's handle
    reason: str
    at_ms: int  # Unix milliseconds
    kv_events: str | None = None  # tcp://host:port; None: the replica does not publish KV events
    speculation: str | None = None  # one of SPECULATION; None: no speculative decoding


SCHEMA: Final = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ReplicaChange)


def encode_addition(addition: ReplicaChange) -> bytes:
    return _encoder.encode(addition)


def decode_addition(data: bytes) -> ReplicaChange:
    """Decode a change of this schema.

    Raises msgspec.DecodeError, msgspec.ValidationError.
    """
    try:
        addition = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    if addition.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {addition.schema}, not {SCHEMA}")
    return addition
