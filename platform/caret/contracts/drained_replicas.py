"""Which replicas are drained: gateways ask nothing new of them, and cut nothing that is under way.

The control plane writes it, gateways follow it. In Redis:

    caret:drains           hash     a replica's name (host:port) -> encoded Drain
    caret:drains:version   counter  raised by each change; what gateways poll
    caret:drains:changed   channel  the version; what wakes gateways at once
    caret:drains:log       list     encoded Drain, newest first, at most steering.LOG_LENGTH

Gateways read the names alone, so that one of an older version holds to what a newer one has
written. A version that is missing is a Redis that has lost its memory: they go on as they were.
"""

from typing import Final

import msgspec

DRAINS: Final = "caret:drains"
DRAINS_VERSION: Final = "caret:drains:version"
DRAINS_CHANGED: Final = "caret:drains:changed"
DRAINS_LOG: Final = "caret:drains:log"


class DrainChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: int  # of this struct: 1
    replica: str  # host:port
    is_drained: bool  # False: it was returned
    operator: str  # his handle
    reason: str
    at_ms: int  # Unix milliseconds


SCHEMA: Final = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(DrainChange)


def encode_drain(drain: DrainChange) -> bytes:
    return _encoder.encode(drain)


def decode_drain(data: bytes) -> DrainChange:
    """Raises msgspec.DecodeError, ValidationError included, for none of this schema."""
    try:
        drain = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    if drain.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {drain.schema}, not {SCHEMA}")
    return drain
