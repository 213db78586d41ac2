"""Which replicas are drained: gateways ask nothing new of them, and cut nothing that is under way.

The control plane writes it, gateways follow it. In Redis:

    caret:drains           hash     a replica's name (host:port) -> encoded Drain
    caret:drains:version   counter  raised by each change; what gateways poll
    caret:drains:changed   channel  the version; what wakes gateways at once
    caret:drains:log       list     encoded Drain, newest first, at most LOG_LENGTH

Gateways read the names alone, so that one of an older version holds to what a newer one has
written. A version that is missing is a Redis that has lost its memory: they go on as they were.
"""

from typing import Final

import msgspec

DRAINS: Final = "caret:drains"
DRAINS_VERSION: Final = "caret:drains:version"
DRAINS_CHANGED: Final = "caret:drains:changed"
DRAINS_LOG: Final = "caret:drains:log"
LOG_LENGTH: Final = 200

# KEYS: drains, version, log. ARGV: the version that was seen, replica, encoded Drain, whether it
# drains (1) or returns (0), log length, channel. Returns the new version; 0: somebody was quicker.
CHANGE_SCRIPT: Final = """
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[1] then return 0 end
if ARGV[4] == '1' then redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
else redis.call('HDEL', KEYS[1], ARGV[2]) end
redis.call('LPUSH', KEYS[3], ARGV[3])
redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[5]) - 1)
local version = redis.call('INCR', KEYS[2])
redis.call('PUBLISH', ARGV[6], version)
return version
"""


class Drain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: int  # of this struct: 1
    replica: str  # host:port
    is_drained: bool  # False: it was returned
    operator: str  # his handle
    reason: str
    at_ms: int  # Unix milliseconds


SCHEMA: Final = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Drain)


def encode_drain(drain: Drain) -> bytes:
    return _encoder.encode(drain)


def decode_drain(data: bytes) -> Drain:
    """Raises msgspec.DecodeError, ValidationError included, for none of this schema."""
    try:
        drain = _decoder.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    if drain.schema != SCHEMA:
        raise msgspec.ValidationError(f"schema {drain.schema}, not {SCHEMA}")
    return drain
