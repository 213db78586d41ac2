"""Replicas that operators have added to pools while gateways run.

The control plane writes them to Redis; gateways follow.

    caret:added-replicas           hash     "POOL REPLICA" (host:port) -> encoded Addition
    caret:added-replicas:version   counter  raised by each change; gateways poll it
    caret:added-replicas:changed   channel  the version; wakes gateways at once
    caret:added-replicas:log       list     encoded Addition, newest first, of bounded length

Prompts are sent to added replicas, so the gateway's own catalogue decides on which hosts replicas
may be added. A missing version means that Redis has lost its memory: gateways keep what they have.
"""

from typing import Final

import msgspec

ADDITIONS: Final = "caret:added-replicas"
ADDITIONS_VERSION: Final = "caret:added-replicas:version"
ADDITIONS_CHANGED: Final = "caret:added-replicas:changed"
ADDITIONS_LOG: Final = "caret:added-replicas:log"
# Beside `ngram` and `draft` there is suffix decoding, which needs a setting of the engine that only
# the catalogue can vouch for.
SPECULATION: Final = ("ngram", "draft")


class ReplicaChange(msgspec.Struct, frozen=True):
    """What a newer version says besides is not read: a replica would be lost in an upgrade."""

    schema: int  # of this struct: 1
    pool: str
    url: str  # http(s)://host:port
    is_added: bool  # False: it was taken out again
    operator: str  # his handle
    reason: str
    at_ms: int  # Unix milliseconds
    kv_events: str | None = None  # tcp://host:port; None: it does not publish them
    speculation: str | None = None  # one of SPECULATION; None: it does not speculate


SCHEMA: Final = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ReplicaChange)


def encode_addition(addition: ReplicaChange) -> bytes:
    return _encoder.encode(addition)


def decode_addition(data: bytes) -> ReplicaChange:
    """Raises msgspec.DecodeError, ValidationError included, for none of this schema."""
    try:
        addition = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    if addition.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {addition.schema}, not {SCHEMA}")
    return addition
