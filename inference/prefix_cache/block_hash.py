"""The gateway's own hashes of token blocks in an engine's prefix cache.

A block's hash covers its tokens and the hash of the previous block; for the first block it covers
the namespace's salt. A hash thus identifies a whole prefix in one namespace. The engine chains its
hashes in the same way, but its hash function depends on version and settings. These hashes are our
own (ADR 0027). They are keyed with a secret of this process, so they reveal nothing.
"""

import hashlib
import os
from array import array
from collections.abc import Sequence
from typing import Final, NewType

from caret.foundation.ids import CacheSalt

BlockHash = NewType("BlockHash", bytes)
_NAME_BYTES: Final = 8  # among a million blocks, a collision occurs once in 30 million cases
_TOKEN_BYTES: Final = 4


class BlockHasher:
    def __init__(self, key: bytes | None = None) -> None:
        """`key`: at most 64 bytes; None: a new random key."""
        self._key = os.urandom(32) if key is None else key

    def hash_root(self, salt: CacheSalt) -> BlockHash:
        """Return the value that precedes the first block."""
        digest = hashlib.blake2b(salt.encode(), digest_size=_NAME_BYTES, key=self._key).digest()
        return BlockHash(digest)

    def hash_chain(
        self, before: BlockHash, token_ids: Sequence[int], *, block_tokens: int
    ) -> list[BlockHash]:
        """Return the hashes of all whole blocks, in order. 2,000 tokens take about 0.05 ms.

        An invalid token ID is an error. Raises OverflowError, TypeError.
        """
        data = array("I", token_ids).tobytes()
        width = block_tokens * _TOKEN_BYTES
        names = []
        for start in range(0, len(data) - width + 1, width):
            text = before + data[start : start + width]
            before = BlockHash(hashlib.blake2b(text, digest_size=_NAME_BYTES).digest())
            names.append(before)
        return names
