"""Which prefixes each replica holds, as its KV events tell; a hint, never a promise.

Rules:
1. Names of blocks are kept, never tokens or salts.
2. A block whose beginning is not known is not kept: nothing could be said of its prefix.
3. Of one replica at most MAX_BLOCKS are kept; the oldest are forgotten first.
"""

from collections.abc import Sequence
from typing import Final

from caret.foundation.ids import CacheSalt
from inference.prefix_cache.block_hash import BlockHash, BlockHasher
from inference.prefix_cache.kv_events import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    EngineHash,
    KvEvent,
)

# Two million tokens in blocks of 16, about 30 MB of ours.
MAX_BLOCKS: Final = 131_072
# Blocks in slower tiers are found by the engine itself, and cost it time: they do not count.
_COUNTED_MEDIA: Final = (None, "GPU")  # the CPU build says GPU, too
_COUNTED_GROUPS: Final = (None, 0)  # of a hybrid model: one stands for all


class ReplicaBlocks:
    """Of one replica."""

    def __init__(self, names: BlockHasher, *, max_blocks: int = MAX_BLOCKS) -> None:
        self._names = names
        self._max_blocks = max_blocks
        self._name_of: dict[EngineHash, BlockHash] = {}  # in the order of their storing
        self._held: set[BlockHash] = set()
        self.block_tokens: int | None = None  # None: nothing is known of it

    def __len__(self) -> int:
        return len(self._name_of)

    def apply(self, event: KvEvent) -> None:
        if isinstance(event, AllBlocksCleared):
            self._clear()
        elif event.medium in _COUNTED_MEDIA and event.group_idx in _COUNTED_GROUPS:
            if isinstance(event, BlockStored):
                self._store(event)
            else:
                self._remove(event)

    def reset(self) -> None:
        """What it holds is not known any more."""
        self._clear()
        self.block_tokens = None

    def count_leading(self, chain: Sequence[BlockHash]) -> int:
        """How many blocks of a prompt, from its first on, are held."""
        for number, name in enumerate(chain):
            if name not in self._held:
                return number
        return len(chain)

    def _clear(self) -> None:
        self._name_of.clear()
        self._held.clear()

    def _store(self, event: BlockStored) -> None:
        before = self._find_parent(event)
        if before is None or not self._has_known_size(event):
            return
        chain = self._names.hash_chain(before, event.token_ids, block_tokens=event.block_size)
        for engine_hash, name in zip(event.block_hashes, chain, strict=False):
            self._name_of[engine_hash] = name
            self._held.add(name)
        while len(self._name_of) > self._max_blocks:
            self._forget_block(next(iter(self._name_of)))

    def _find_parent(self, event: BlockStored) -> BlockHash | None:
        """The name that the first of these blocks follows; None: not known, or not a gateway's."""
        first, *others = event.extra_keys or [None]
        if any(keys for keys in others):
            return None
        if event.parent_block_hash is not None:
            return None if first else self._name_of.get(event.parent_block_hash)
        if first is None or len(first) != 1 or not isinstance(first[0], str):
            return None
        return self._names.hash_root(CacheSalt(first[0]))

    def _has_known_size(self, event: BlockStored) -> bool:
        """All blocks of a replica are alike, but for the partial ones of some models."""
        if self.block_tokens is None and event.block_size > 0:
            self.block_tokens = event.block_size
        return event.block_size == self.block_tokens

    def _remove(self, event: BlockRemoved) -> None:
        for engine_hash in event.block_hashes:
            self._forget_block(engine_hash)

    def _forget_block(self, engine_hash: EngineHash) -> None:
        name = self._name_of.pop(engine_hash, None)
        if name is not None:
            self._held.discard(name)


class PrefixCacheIndex:
    """Of all replicas that publish, by their addresses."""

    def __init__(self, names: BlockHasher | None = None) -> None:
        self._names = names or BlockHasher()
        self._held: dict[str, ReplicaBlocks] = {}

    def add_replica(self, url: str) -> ReplicaBlocks:
        """To be filled from this replica's events."""
        return self._held.setdefault(url, ReplicaBlocks(self._names))

    def remove_replica(self, url: str) -> None:
        """The replica is gone."""
        self._held.pop(url, None)

    def count_cached_tokens(
        self, urls: Sequence[str], salt: CacheSalt, token_ids: Sequence[int]
    ) -> dict[str, int]:
        """Leading tokens of the prompt that each replica holds; without those that tell nothing."""
        chains: dict[int, list[BlockHash]] = {}
        cached = {}
        for url in urls:
            held = self._held.get(url)
            if held is None or held.block_tokens is None:
                continue
            size = held.block_tokens
            if size not in chains:
                root = self._names.hash_root(salt)
                chains[size] = self._names.hash_chain(root, token_ids, block_tokens=size)
            cached[url] = held.count_leading(chains[size]) * size
        return cached
