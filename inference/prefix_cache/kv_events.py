"""vLLM's KV events, as its replicas publish them (`vllm/distributed/kv_events.py`, 0.32).

They hold the prompts' tokens and the salts in clear, on an unauthenticated socket: such replicas
belong on a private network. Only what the index needs is read here, and nothing of it is kept.
"""

from typing import Any, Final

import msgspec

EngineHash = int | bytes  # by the engine's own settings


class BlockStored(msgspec.Struct, frozen=True, tag=True):
    block_hashes: list[EngineHash]
    parent_block_hash: EngineHash | None  # None: the first block is a prompt's first
    token_ids: list[int]  # of all these blocks
    block_size: int  # tokens of one
    medium: str | None = None
    # For each block what is in its hash besides its tokens: the first block's salt, names of
    # adapters and images.
    extra_keys: list[list[Any] | None] | None = None
    group_idx: int | None = None  # of a hybrid model's caches; None: there is one


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
    """What was published is no batch of events that we know."""


_decode: Final = msgspec.msgpack.Decoder(_KvEventBatch).decode


def decode_events(payload: bytes) -> list[KvEvent]:
    """Raises MalformedKvEvents, without its cause, which may quote what it read."""
    try:
        return _decode(payload).events
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise MalformedKvEvents from None
