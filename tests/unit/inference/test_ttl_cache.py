"""Computed values are cached for a limited time, within size limits, and for one partition.

A partition belongs to a tenant, or to a user in strict isolation. It has two generations: new and
used values are in the young one. The young one becomes the old one after LIFETIME_S, or when it is
full.
"""

import asyncio

from inference.context.prompt.prompt_writer import PromptWriter, evict_expired_forever
from inference.context.tokenization.ttl_cache import (
    LIFETIME_S,
    MAX_SHARE,
    Digest,
    PartitionKey,
    TtlCache,
    compute_digest,
)
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import TOKENIZER
from tests.fakes.polling import wait_until

ADA_PARTITION, GUS_PARTITION = PartitionKey(b"a" * 32), PartitionKey(b"g" * 32)
MAX_WEIGHT = 1_000


def _cache(clock: FakeClock) -> TtlCache[str]:
    return TtlCache(clock, max_weight=MAX_WEIGHT, weigh=len)


def _get(cache: TtlCache[str], partition: PartitionKey, number: int, size: int = 1) -> str:
    """Get the value with this number. Return "cached", or "computed" if it was not in the cache."""
    computed = []

    def compute() -> str:
        computed.append(number)
        return "x" * size

    cache.get_or_compute(Digest(b"%d" % number), compute, partition=partition)
    return "computed" if computed else "cached"


def _weight(cache: TtlCache[str]) -> int:
    return sum(
        len(value)
        for partition in cache._partitions.values()
        for value in (*partition.young.values(), *partition.old.values())
    )


def test_the_same_text_has_different_digests_for_different_partitions() -> None:
    assert compute_digest("text", ADA_PARTITION) == compute_digest("text", ADA_PARTITION)
    assert compute_digest("text", ADA_PARTITION) != compute_digest("text", GUS_PARTITION)


def test_the_size_is_limited() -> None:
    cache = _cache(FakeClock())

    for number in range(200):
        _get(cache, PartitionKey(b"%d" % (number % 20)), number, size=50)
        # The latest value may exceed the limit until the next call.
        assert cache._weight == _weight(cache) <= MAX_WEIGHT + 50


def test_a_partition_has_at_most_a_quarter_and_evicts_no_values_of_others() -> None:
    cache = _cache(FakeClock())
    _get(cache, ADA_PARTITION, 0)

    for number in range(200):
        _get(cache, GUS_PARTITION, number, size=20)

    # Each of the partition's two generations may exceed its limit by one value of 20. Ada's value
    # weighs 1.
    assert _weight(cache) <= MAX_WEIGHT * MAX_SHARE + 2 * 20 + 1
    assert _get(cache, ADA_PARTITION, 0) == "cached"


def test_a_value_used_again_counts_once() -> None:
    cache = _cache(FakeClock())
    # The values 0 and 1 are used again, so that they move from the old generation to the young one.
    for number in (*range(8), 0, 1, *range(8, 14), 0, 1):
        _get(cache, ADA_PARTITION, number, size=20)

    assert cache._weight == _weight(cache)
    assert _get(cache, ADA_PARTITION, 0, size=20) == "cached"


def test_expired_values_are_evicted() -> None:
    clock = FakeClock()
    cache = _cache(clock)
    _get(cache, ADA_PARTITION, 0)

    clock.pass_s(2 * LIFETIME_S)
    cache.evict_expired()

    assert (len(cache), cache._weight, cache._partitions) == (0, 0, {})


def test_a_late_eviction_does_not_extend_the_lifetime() -> None:
    clock = FakeClock()
    cache = _cache(clock)
    _get(cache, ADA_PARTITION, 0)

    clock.pass_s(1.9 * LIFETIME_S)
    cache.evict_expired()
    clock.pass_s(0.1 * LIFETIME_S)
    cache.evict_expired()

    assert len(cache) == 0


async def test_a_background_task_evicts_expired_values_of_a_prompt_writer() -> None:
    clock = FakeClock()
    writer = PromptWriter(TOKENIZER, model="demo", max_context_tokens=8_192, clock=clock)
    writer.scores.get_or_compute(Digest(b"k"), lambda: 1.0, partition=ADA_PARTITION)
    clock.pass_s(2 * LIFETIME_S)

    task = asyncio.create_task(evict_expired_forever([writer], every_s=0.0))
    await wait_until(lambda: len(writer.scores) == 0)

    task.cancel()
