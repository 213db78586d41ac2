"""Checks whether a replica may serve a pool, from its statements about itself. Pure.

A missing statement is not a contradiction: a server such as a router may not support the request
for it. If replicas contradict each other, the most common statement wins. In a tie, the previous
statement wins if it is among the most common ones. If it is not, the first one in alphabetical
order wins.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from inference.pools.pool_config import Pool

# The replica and the gateway both encode this text. Tokenizers differ in how they split these
# words, indents, punctuation marks and letters.
PROBE_TEXT: Final = "def größe(x1, y):\n        return [x1 + 2048, '漢字 -> %s']  # Ελλάδα\n"
T = TypeVar("T")


class MismatchReason(StrEnum):
    # An operator added the replica at an address that the configuration does not allow.
    HOST_NOT_ALLOWED = "host_not_allowed"
    NAME_NOT_FOUND = "name_not_found"  # the replica's name has no address
    UNREACHABLE = "unreachable"  # the replica was discovered or added, but does not respond
    NO_IDENTITY = "no_identity"  # an operator added the replica, but it does not state its model
    MODEL = "model"  # the replica does not serve the pool's model
    VERSION = "version"  # the other replicas serve other weights under the model's name
    CONTEXT_LENGTH = "context_length"  # the replica accepts fewer tokens than max_context_tokens
    TOKENIZER = "tokenizer"  # the replica encodes PROBE_TEXT in another way than the gateway
    BLOCK_SIZE = "block_size"  # the other replicas' prefix caches have another block size


@dataclass(frozen=True, slots=True)
class ReplicaIdentity:
    """The statements of a replica; None: not stated."""

    roots: Mapping[str, str | None] | None = None  # by served name: folder or address of weights
    max_context_tokens: Mapping[str, int | None] | None = None  # by served name
    token_ids: tuple[int, ...] | None = None  # of PROBE_TEXT
    block_tokens: int | None = None  # size of a block of the prefix cache

    def root(self, model: str) -> str | None:
        return (self.roots or {}).get(model)


@dataclass(frozen=True, slots=True)
class IdentityMismatch:
    reason: MismatchReason
    actual: str = ""
    expected: str = ""


@dataclass(frozen=True, slots=True)
class PoolIdentity:
    """The common identity of a pool's replicas; None: not stated."""

    root: str | None = None
    block_tokens: int | None = None


def derive_pool_identity(
    pool: Pool,
    identities: Sequence[ReplicaIdentity],
    previous: PoolIdentity,
    *,
    newcomers: Sequence[ReplicaIdentity] = (),
) -> PoolIdentity:
    """Derive the common identity of the pool's replicas.

    `previous` is the result of the last call. `newcomers` are replicas that operators have added. A
    statement of theirs about a property counts only if none of `identities` states that property.
    """

    def find_majority(
        read_statement: Callable[[ReplicaIdentity], T | None], previous_statement: T | None
    ) -> T | None:
        is_stated = any(read_statement(identity) is not None for identity in identities)
        voters = identities if is_stated else newcomers
        return _choose_most_common(voters, read_statement, previous_statement)

    return PoolIdentity(
        root=find_majority(lambda identity: identity.root(pool.model), previous.root),
        block_tokens=pool.block_tokens
        or find_majority(lambda identity: identity.block_tokens, previous.block_tokens),
    )


def check_identity(
    pool: Pool, identity: ReplicaIdentity, standard: PoolIdentity, token_ids: tuple[int, ...]
) -> IdentityMismatch | None:
    """Return the mismatch; None: the replica may serve the pool.

    `standard` is the common identity of the pool's replicas. `token_ids` are the token IDs of
    PROBE_TEXT by the pool's tokenizer.
    """
    if identity.roots is not None and pool.model not in identity.roots:
        return IdentityMismatch(MismatchReason.MODEL, ", ".join(sorted(identity.roots)), pool.model)
    root = identity.root(pool.model)
    if root is not None and root != standard.root:
        return IdentityMismatch(MismatchReason.VERSION, root, standard.root or "")
    context = (identity.max_context_tokens or {}).get(pool.model)
    if context is not None and context < pool.max_context_tokens:
        return IdentityMismatch(
            MismatchReason.CONTEXT_LENGTH, str(context), str(pool.max_context_tokens)
        )
    if identity.token_ids is not None and identity.token_ids != token_ids:
        return IdentityMismatch(
            MismatchReason.TOKENIZER, f"{len(identity.token_ids)} tokens", pool.tokenizer
        )
    if identity.block_tokens is not None and identity.block_tokens != standard.block_tokens:
        return IdentityMismatch(
            MismatchReason.BLOCK_SIZE, str(identity.block_tokens), str(standard.block_tokens)
        )
    return None


def _choose_most_common(
    identities: Iterable[ReplicaIdentity],
    read_statement: Callable[[ReplicaIdentity], T | None],
    previous: T | None,
) -> T | None:
    counts = Counter(
        value for identity in identities if (value := read_statement(identity)) is not None
    )
    if not counts:
        return previous
    max_count = max(counts.values())
    most_common = [value for value, count in counts.items() if count == max_count]
    return previous if previous in most_common else min(most_common, key=str)
