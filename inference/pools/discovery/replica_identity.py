"""Whether replicas may serve a pool, by what they say of themselves. Pure.

Silence is no contradiction: a server that does not know a question (a router before engines) is
taken. Where replicas contradict each other the most have it; as many: what was so before.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from inference.pools.pool_config import Pool

# Encoded by the replica and by the gateway: words, indents, marks and letters that tokenizers split
# in their own ways.
PROBE_TEXT: Final = "def größe(x1, y):\n        return [x1 + 2048, '漢字 -> %s']  # Ελλάδα\n"
T = TypeVar("T")


class MismatchReason(StrEnum):
    HOST_NOT_ALLOWED = "place"  # added by an operator, where the catalogue lets none be added
    NAME_NOT_FOUND = "address"  # its name has no address
    UNREACHABLE = "silent"  # found by its service's name, and nobody answers
    NO_IDENTITY = "unsaid"  # added by an operator, and it does not say what it serves
    MODEL = "model"  # it does not serve the pool's
    VERSION = "version"  # by that name it serves another than the others do
    CONTEXT_LENGTH = "context"  # it takes fewer tokens than the pool's max_context_tokens
    TOKENIZER = "tokenizer"
    BLOCK_SIZE = "block_size"


@dataclass(frozen=True, slots=True)
class ReplicaIdentity:
    """What a replica says; None: nothing."""

    roots: Mapping[str, str | None] | None = None  # by the served name: weights' folder or address
    max_context_tokens: Mapping[str, int | None] | None = None  # by the served name
    token_ids: tuple[int, ...] | None = None  # of PROBE_TEXT
    block_tokens: int | None = None

    def root(self, model: str) -> str | None:
        return (self.roots or {}).get(model)


@dataclass(frozen=True, slots=True)
class IdentityMismatch:
    reason: MismatchReason
    found: str = ""
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class PoolIdentity:
    """What a pool's replicas have in common; None: nobody says."""

    root: str | None = None
    block_tokens: int | None = None


def derive_pool_identity(
    pool: Pool,
    told: Sequence[ReplicaIdentity],
    before: PoolIdentity,
    *,
    newcomers: Sequence[ReplicaIdentity] = (),
) -> PoolIdentity:
    """`newcomers` are heard of what nobody else tells."""

    def most(ask: Callable[[ReplicaIdentity], T | None], before: T | None) -> T | None:
        return _most(told, ask, _most(newcomers, ask, before) if _none(told, ask) else before)

    return PoolIdentity(
        root=most(lambda each: each.root(pool.model), before.root),
        block_tokens=pool.block_tokens or most(lambda each: each.block_tokens, before.block_tokens),
    )


def check_identity(
    pool: Pool, said: ReplicaIdentity, standard: PoolIdentity, token_ids: tuple[int, ...]
) -> IdentityMismatch | None:
    """`token_ids`: of PROBE_TEXT, by the pool's tokenizer. None: it may serve."""
    if said.roots is not None and pool.model not in said.roots:
        return IdentityMismatch(MismatchReason.MODEL, ", ".join(sorted(said.roots)), pool.model)
    root = said.root(pool.model)
    if root is not None and root != standard.root:
        return IdentityMismatch(MismatchReason.VERSION, root, standard.root or "")
    context = (said.max_context_tokens or {}).get(pool.model)
    if context is not None and context < pool.max_context_tokens:
        return IdentityMismatch(
            MismatchReason.CONTEXT_LENGTH, str(context), str(pool.max_context_tokens)
        )
    if said.token_ids is not None and said.token_ids != token_ids:
        return IdentityMismatch(
            MismatchReason.TOKENIZER, f"{len(said.token_ids)} tokens", pool.tokenizer
        )
    if said.block_tokens is not None and said.block_tokens != standard.block_tokens:
        return IdentityMismatch(
            MismatchReason.BLOCK_SIZE, str(said.block_tokens), str(standard.block_tokens)
        )
    return None


def _most(
    every: Iterable[ReplicaIdentity], ask: Callable[[ReplicaIdentity], T | None], before: T | None
) -> T | None:
    counts = Counter(value for each in every if (value := ask(each)) is not None)
    if not counts:
        return before
    most = max(counts.values())
    tied = [value for value, count in counts.items() if count == most]
    return before if before in tied else min(tied, key=str)


def _none(every: Iterable[ReplicaIdentity], ask: Callable[[ReplicaIdentity], T | None]) -> bool:
    return all(ask(each) is None for each in every)
