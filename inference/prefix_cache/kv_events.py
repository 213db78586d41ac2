"""vLLM's KV events, as replicas publish them (`vllm/distributed/kv_events.py`, 0.32).

The events contain the tokens of prompts and the salts in clear text, and anybody may subscribe to
them. So replicas that publish events need a private network. Only the fields that the index needs
are decoded, and neither tokens nor salts are stored.
"""

from typing import Any, Final

import msgspec

EngineHash = int | bytes  # a block's hash; the type depends on the engine's settings


class BlockStored(msgspec.Struct, frozen=True, tag=True):
    block_hashes: list[EngineHash]
    parent_block_hash: EngineHash | None  # None: the blocks are at the beginning of a prompt
    token_ids: list[int]  # of all these blocks
    block_size: int  # tokens per block
    medium: str | None = None  # "GPU", or slower memory; None: not reported
    # For each block, the inputs of its hash besides tokens: the salt of a prompt's first block, and
    # the names of adapters and images.
    extra_keys: list[list[Any] | None] | None = None
    group_idx: int | None = None  # of a hybrid model's caches; None: there is only one


class BlockRemoved(msgspec.Struct, frozen=True, tag=True):
    block_hashes: list[EngineHash]
    medium: str | None = None
    group_idx: int | None = None


class AllBlocksCleared(msgspec.Struct, frozen=True, tag=True):
    pass


KvEvent = BlockStored | BlockRemoved | AllBlocksCleared


class _KvEventBatch(msgspec.Struct, frozen=True, array_like=True):
    occurred_at: float  # Unix seconds
    events: list[KvEvent]


class MalformedKvEvents(Exception):
    """The published data is not a known batch of events."""


_decode: Final = msgspec.msgpack.Decoder(_KvEventBatch).decode


def decode_events(payload: bytes) -> list[KvEvent]:
    """Decode a batch of events.

    Raises MalformedKvEvents without a cause, because a cause could quote the data.
    """
    try:
        return _decode(payload).events
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise MalformedKvEvents from None
