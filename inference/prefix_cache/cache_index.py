"""An index of the prefixes in each replica's cache, from KV events.

Events may be late or lost, so a replica may not have a prefix although the index contains it.

Rules:
1. Only hashes of blocks are stored, never tokens or salts.
2. A block whose predecessor is unknown is not stored: its prefix would be unknown.
3. At most MAX_BLOCKS are stored per replica; the oldest are dropped first.
"""

import hashlib
import os
from array import array
from collections.abc import Sequence
from typing import Final, NewType

from caret.foundation.ids import CacheSalt
from inference.prefix_cache.kv_events import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    EngineHash,
    KvEvent,
)

# Per replica: two million tokens in blocks of 16. Takes about 30 MB.
MAX_BLOCKS: Final = 131_072
# Blocks in slower memory or on disk do not count, because the engine must load them first.
_COUNTED_MEDIA: Final = (None, "GPU")  # vLLM's CPU build also reports GPU
# A hybrid model has a cache for each group of layers. The first group represents all.
_COUNTED_GROUPS: Final = (None, 0)
_HASH_BYTES: Final = 8  # among a million blocks, two collide in 1 of 30 million cases
_TOKEN_BYTES: Final = 4

BlockHash = NewType("BlockHash", bytes)


class BlockHasher:
    """Computes the gateway's own hashes of token blocks in an engine's prefix cache.

    A block's hash covers its tokens and the hash of the previous block. The hash of the first block
    covers the namespace's salt instead. A hash thus identifies a whole prefix in one namespace. The
    engine chains its hashes in the same way, but its hash function depends on version and settings.
    The gateway therefore computes its own hashes (ADR 0027). They depend on a secret of this
    process, so they do not reveal tokens.
    """

    def __init__(self, key: bytes | None = None) -> None:
        """`key`: the secret, at most 64 bytes; None: a new random secret."""
        self._key = os.urandom(32) if key is None else key

    def hash_root(self, salt: CacheSalt) -> BlockHash:
        """Return the hash that takes the place of a block before the first one."""
        digest = hashlib.blake2b(salt.encode(), digest_size=_HASH_BYTES, key=self._key).digest()
        return BlockHash(digest)

    def hash_chain(
        self, before: BlockHash, token_ids: Sequence[int], *, block_tokens: int
    ) -> list[BlockHash]:
        """Return the hashes of all complete blocks, in order. 2,000 tokens take about 0.05 ms.

        `before` is the hash of the previous block, or of the root. `block_tokens` is the size of a
        block. Raises OverflowError or TypeError for an invalid token ID.
        """
        data = array("I", token_ids).tobytes()
        block_bytes = block_tokens * _TOKEN_BYTES
        hashes = []
        for start in range(0, len(data) - block_bytes + 1, block_bytes):
            hash_input = before + data[start : start + block_bytes]
            before = BlockHash(hashlib.blake2b(hash_input, digest_size=_HASH_BYTES).digest())
            hashes.append(before)
        return hashes


class ReplicaBlocks:
    """The cached blocks of one replica."""

    def __init__(self, hasher: BlockHasher, *, max_blocks: int = MAX_BLOCKS) -> None:
        self._hasher = hasher
        self._max_blocks = max_blocks
        self._block_hashes: dict[EngineHash, BlockHash] = {}  # the oldest first
        self._blocks: set[BlockHash] = set()
        self.block_tokens: int | None = None  # size of a block; None: unknown

    def __len__(self) -> int:
        return len(self._block_hashes)

    def apply(self, event: KvEvent) -> None:
        if isinstance(event, AllBlocksCleared):
            self._clear()
        elif event.medium in _COUNTED_MEDIA and event.group_idx in _COUNTED_GROUPS:
            if isinstance(event, BlockStored):
                self._store(event)
            else:
                self._remove(event)

    def reset(self) -> None:
        """Delete all blocks and their size, because the content of the cache is unknown."""
        self._clear()
        self.block_tokens = None

    def count_leading(self, chain: Sequence[BlockHash]) -> int:
        """Return the number of leading blocks that are cached. `chain`: all blocks of a prompt."""
        for index, block_hash in enumerate(chain):
            if block_hash not in self._blocks:
                return index
        return len(chain)

    def _clear(self) -> None:
        self._block_hashes.clear()
        self._blocks.clear()

    def _store(self, event: BlockStored) -> None:
        before = self._find_parent(event)
        if before is None:
            return
        self._learn_block_size(event)
        # All blocks of a replica have the same size, except partial blocks of some models.
        if event.block_size != self.block_tokens:
            return
        chain = self._hasher.hash_chain(before, event.token_ids, block_tokens=event.block_size)
        for engine_hash, block_hash in zip(event.block_hashes, chain, strict=False):
            self._block_hashes[engine_hash] = block_hash
            self._blocks.add(block_hash)
        while len(self._block_hashes) > self._max_blocks:
            self._remove_block(next(iter(self._block_hashes)))

    def _find_parent(self, event: BlockStored) -> BlockHash | None:
        """Return the hash before the first of these blocks.

        Return None if it is unknown, or if the blocks do not belong to a request of a gateway. A
        gateway's request has a salt at its first block, and no other extra keys.
        """
        first_keys, *later_keys = event.extra_keys or [None]
        if any(keys for keys in later_keys):
            return None
        if event.parent_block_hash is not None:
            return None if first_keys else self._block_hashes.get(event.parent_block_hash)
        if first_keys is None or len(first_keys) != 1 or not isinstance(first_keys[0], str):
            return None
        return self._hasher.hash_root(CacheSalt(first_keys[0]))

    def _learn_block_size(self, event: BlockStored) -> None:
        """Set the size of the replica's blocks if these are its first blocks."""
        if self.block_tokens is None and event.block_size > 0:
            self.block_tokens = event.block_size

    def _remove(self, event: BlockRemoved) -> None:
        for engine_hash in event.block_hashes:
            self._remove_block(engine_hash)

    def _remove_block(self, engine_hash: EngineHash) -> None:
        block_hash = self._block_hashes.pop(engine_hash, None)
        if block_hash is not None:
            self._blocks.discard(block_hash)


class PrefixCacheIndex:
    """The cached blocks of all replicas that publish events, by the replica's URL."""

    def __init__(self, hasher: BlockHasher | None = None) -> None:
        self._hasher = hasher or BlockHasher()
        self._blocks_by_url: dict[str, ReplicaBlocks] = {}

    def add_replica(self, url: str) -> ReplicaBlocks:
        """Return the blocks of a replica, to be updated from its events. Add it if it is new."""
        return self._blocks_by_url.setdefault(url, ReplicaBlocks(self._hasher))

    def remove_replica(self, url: str) -> None:
        """Delete the blocks of a replica whose events are no longer received."""
        self._blocks_by_url.pop(url, None)

    def count_cached_tokens(
        self, urls: Sequence[str], salt: CacheSalt, token_ids: Sequence[int]
    ) -> dict[str, int]:
        """Return by URL the number of tokens at the beginning of a prompt that are cached.

        Replicas whose block size is unknown are left out.
        """
        chains: dict[int, list[BlockHash]] = {}
        cached = {}
        for url in urls:
            blocks = self._blocks_by_url.get(url)
            if blocks is None or blocks.block_tokens is None:
                continue
            size = blocks.block_tokens
            if size not in chains:
                root = self._hasher.hash_root(salt)
                chains[size] = self._hasher.hash_chain(root, token_ids, block_tokens=size)
            cached[url] = blocks.count_leading(chains[size]) * size
        return cached
