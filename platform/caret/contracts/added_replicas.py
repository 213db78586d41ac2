"""Which replicas operators have added to pools while gateways run.

The control plane writes it, gateways follow it. In Redis:

    caret:additions           hash     "POOL REPLICA" (host:port) -> encoded Addition
    caret:additions:version   counter  raised by each change; what gateways poll
    caret:additions:changed   channel  the version; what wakes gateways at once
    caret:additions:log       list     encoded Addition, newest first, at most steering.LOG_LENGTH

Where replicas may be added says the gateways' catalogue, not who writes here: prompts are sent to
them. A version that is missing is a Redis that has lost its memory: gateways go on as they were.
"""

from typing import Final

import msgspec

ADDITIONS: Final = "caret:additions"
ADDITIONS_VERSION: Final = "caret:additions:version"
ADDITIONS_CHANGED: Final = "caret:additions:changed"
ADDITIONS_LOG: Final = "caret:additions:log"
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
