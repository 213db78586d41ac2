"""Draining replicas: gateways send them no new requests and let running ones finish.

The control plane writes their names to Redis, and gateways follow the changes:

    caret:drained-replicas           hash     replica name (host:port) -> encoded DrainChange;
                                              only replicas that are drained now
    caret:drained-replicas:version   counter  incremented by each change; gateways poll it
    caret:drained-replicas:changed   channel  the new version; wakes gateways at once
    caret:drained-replicas:log       list     encoded DrainChange, newest first, of bounded length

Gateways read only the names in the hash and not the values, so an older gateway obeys a control
plane that writes a newer form of DrainChange. If the version is missing, nothing was ever drained,
or Redis has lost its data. In both cases, gateways go on draining the replicas that they drained
before.
"""

from typing import Final

import msgspec

DRAINS: Final = "caret:drained-replicas"
DRAINS_VERSION: Final = "caret:drained-replicas:version"
DRAINS_CHANGED: Final = "caret:drained-replicas:changed"
DRAINS_LOG: Final = "caret:drained-replicas:log"


class DrainChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: int  # version of this struct: SCHEMA
    replica: str  # host:port
    is_drained: bool  # False: the replica is in use again
    operator: str  # the operator's handle
    reason: str
    at_ms: int  # Unix milliseconds


SCHEMA: Final = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(DrainChange)


def encode_drain(drain: DrainChange) -> bytes:
    return _encoder.encode(drain)


def decode_drain(data: bytes) -> DrainChange:
    """Decode a change whose schema is SCHEMA.

    Raises msgspec.DecodeError, msgspec.ValidationError.
    """
    try:
        drain = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    if drain.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {drain.schema}, not {SCHEMA}")
    return drain
