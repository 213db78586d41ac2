"""The gateway's own names for blocks of tokens in an engine's prefix cache.

A block's name is a hash of its tokens and of the name of the block before it; that of the first
block begins with the namespace's salt. So a name says a whole prefix, of one namespace. The
engine's own hashes are chained in the same way, but by a function that differs between its versions
and settings; these are ours (ADR 0027), keyed with a secret of this process, and tell nobody
anything.
"""

import hashlib
import os
from array import array
from collections.abc import Sequence
from typing import Final, NewType

from caret.foundation.ids import CacheSalt

BlockHash = NewType("BlockHash", bytes)
_NAME_BYTES: Final = 8  # two of a million blocks are alike by chance once in 30 million
_TOKEN_BYTES: Final = 4


class BlockHasher:
    def __init__(self, key: bytes | None = None) -> None:
        """`key`: at most 64 bytes; None: a new one."""
        self._key = os.urandom(32) if key is None else key

    def hash_root(self, salt: CacheSalt) -> BlockHash:
        """What stands before the first block."""
        digest = hashlib.blake2b(salt.encode(), digest_size=_NAME_BYTES, key=self._key).digest()
        return BlockHash(digest)

    def hash_chain(
        self, before: BlockHash, token_ids: Sequence[int], *, block_tokens: int
    ) -> list[BlockHash]:
        """The names of all whole blocks, in order. 2,000 tokens take about 0.05 ms.

        Raises OverflowError or TypeError for what is no token id.
        """
        data = array("I", token_ids).tobytes()
        width = block_tokens * _TOKEN_BYTES
        names = []
        for start in range(0, len(data) - width + 1, width):
            text = before + data[start : start + width]
            before = BlockHash(hashlib.blake2b(text, digest_size=_NAME_BYTES).digest())
            names.append(before)
        return names
