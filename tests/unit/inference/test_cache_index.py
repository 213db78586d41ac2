"""The index of the blocks in the replicas' prefix caches, updated from the events of vLLM."""

import os
from typing import Any

import msgspec
import pytest

from caret.foundation.ids import CacheSalt
from inference.prefix_cache.cache_index import BlockHasher, PrefixCacheIndex, ReplicaBlocks
from inference.prefix_cache.kv_events import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    MalformedKvEvents,
    decode_events,
)

OURS, THEIRS = CacheSalt("a" * 64), CacheSalt("b" * 64)
PROMPT = list(range(100, 165))  # four blocks of 16 tokens, and one more token
URL = "http://one:1"


def _stored(
    first: int, count: int, *, salt: str = OURS, tokens: list[int] = PROMPT, **fields: Any
) -> BlockStored:
    """Return the event that stores `count` blocks of the prompt `tokens`, from block `first` on.

    The hash of a block is its number.
    """
    # Extra inputs of each block's hash. The first block of a prompt has the salt.
    extra: list[list[Any] | None] = [None] * count
    if first == 0:
        extra[0] = [salt]
    defaults: dict[str, Any] = {
        "block_hashes": list(range(first, first + count)),
        "parent_block_hash": first - 1 if first else None,
        "token_ids": tokens[first * 16 : (first + count) * 16],
        "block_size": 16,
        "medium": "GPU",
        "extra_keys": extra,
    }
    return BlockStored(**{**defaults, **fields})


def _make_index(*events: Any) -> PrefixCacheIndex:
    """Return the index after these events of the replica at URL."""
    index = PrefixCacheIndex()
    # `add_replica` returns the blocks of the replica, which it adds only the first time.
    for event in events:
        index.add_replica(URL).apply(event)
    return index


def _count_cached_tokens(
    index: PrefixCacheIndex, *, salt: CacheSalt = OURS, tokens: list[int] = PROMPT
) -> int:
    return index.count_cached_tokens([URL], salt, tokens)[URL]


def test_stored_blocks_are_found() -> None:
    assert _count_cached_tokens(_make_index(_stored(0, 4))) == 64


def test_a_prefix_grows_over_several_events() -> None:
    assert _count_cached_tokens(_make_index(_stored(0, 1), _stored(1, 2))) == 48


def test_the_blocks_of_an_equal_prompt_of_another_tenant_are_not_found() -> None:
    assert _count_cached_tokens(_make_index(_stored(0, 4)), salt=THEIRS) == 0


def test_blocks_are_found_up_to_the_first_difference_of_a_prompt() -> None:
    other_prompt = [*PROMPT[:16], 7, *PROMPT[17:]]  # differs in the second block

    assert _count_cached_tokens(_make_index(_stored(0, 4)), tokens=other_prompt) == 16


def test_removed_blocks_are_not_found() -> None:
    index = _make_index(_stored(0, 4), BlockRemoved(block_hashes=[2, 3], medium="GPU"))

    assert _count_cached_tokens(index) == 32


def test_a_missing_block_ends_the_prefix() -> None:
    index = _make_index(_stored(0, 4), BlockRemoved(block_hashes=[1], medium="GPU"))

    assert _count_cached_tokens(index) == 16


def test_a_cleared_cache_contains_nothing() -> None:
    assert _count_cached_tokens(_make_index(_stored(0, 4), AllBlocksCleared())) == 0


def test_blocks_with_an_unknown_parent_are_ignored() -> None:
    index = _make_index(_stored(2, 2))

    assert len(index.add_replica(URL)) == 0


def test_the_cache_of_a_reset_replica_is_unknown_instead_of_empty() -> None:
    index = _make_index(_stored(0, 4))

    index.add_replica(URL).reset()

    assert index.count_cached_tokens([URL], OURS, PROMPT) == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"medium": "CPU"},
        {"group_idx": 1},
        {"extra_keys": [["adapter", OURS], None]},
        {"extra_keys": [[OURS], ["image"]]},
        {"extra_keys": None},
    ],
    ids=["in slow memory", "second cache of a hybrid model", "adapter", "image", "without a salt"],
)
def test_blocks_of_other_kinds_are_ignored(fields: dict[str, Any]) -> None:
    index = _make_index(_stored(0, 2, **fields))

    assert len(index.add_replica(URL)) == 0


def test_a_following_block_with_extra_keys_is_ignored() -> None:
    index = _make_index(_stored(0, 1), _stored(1, 1, extra_keys=[["image"]]))

    assert _count_cached_tokens(index) == 16


def test_the_oldest_blocks_are_evicted_first() -> None:
    hasher = BlockHasher()
    blocks = ReplicaBlocks(hasher, max_blocks=3)

    for number in range(4):
        blocks.apply(_stored(number, 1))

    chain = hasher.hash_chain(hasher.hash_root(OURS), PROMPT, block_tokens=16)
    assert len(blocks) == 3
    # The first block of the chain is missing, the other three are stored.
    assert (blocks.count_leading(chain), blocks.count_leading(chain[1:])) == (0, 3)


def test_replicas_without_events_are_left_out() -> None:
    index = _make_index(_stored(0, 4))
    index.add_replica("http://two:1")

    counts = index.count_cached_tokens([URL, "http://two:1", "http://three:1"], OURS, PROMPT)

    assert counts == {URL: 64}


def test_replicas_may_have_different_block_sizes() -> None:
    index = _make_index(_stored(0, 4))
    index.add_replica("http://two:1").apply(_stored(0, 2, token_ids=PROMPT[:64], block_size=32))

    assert index.count_cached_tokens([URL, "http://two:1"], OURS, PROMPT) == {
        URL: 64,
        "http://two:1": 64,
    }


def test_block_hashes_depend_on_a_secret_key() -> None:
    hasher, hasher_with_other_key = BlockHasher(), BlockHasher()

    chain, repeated_chain, other_chain = (
        used_hasher.hash_chain(used_hasher.hash_root(OURS), PROMPT, block_tokens=16)
        for used_hasher in (hasher, hasher, hasher_with_other_key)
    )

    assert chain == repeated_chain
    assert not set(chain) & set(other_chain)


def test_events_in_vllms_format_are_decoded() -> None:
    stored: dict[str, Any] = {
        "type": "BlockStored",
        "block_hashes": [2**64 - 1],
        "parent_block_hash": None,
    }
    stored |= {"token_ids": [1, 2], "block_size": 2, "lora_id": None, "medium": "GPU"}
    stored |= {"lora_name": None, "extra_keys": [["salt"]], "group_idx": 0, "new_field": 1}
    removed = {"type": "BlockRemoved", "block_hashes": [b"x" * 32], "medium": "GPU"}
    # A time, the events, and a number that is not read.
    batch = [1.5, [stored, removed, {"type": "AllBlocksCleared"}], 0]

    events = decode_events(msgspec.msgpack.encode(batch))

    assert [type(event) for event in events] == [BlockStored, BlockRemoved, AllBlocksCleared]


@pytest.mark.parametrize("payload", [b"", b"\xc1", msgspec.msgpack.encode([1.0, [{"type": "x"}]])])
def test_a_malformed_batch_is_rejected(payload: bytes) -> None:
    with pytest.raises(MalformedKvEvents):
        decode_events(payload)


def test_random_bytes_are_rejected() -> None:
    for _ in range(200):
        with pytest.raises(MalformedKvEvents):
            decode_events(os.urandom(40))
