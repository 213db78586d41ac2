"""Computed values are cached for a while, within size limits, and separately for each holder."""

import asyncio

from inference.context.prompt.forgetting import evict_expired_forever
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.tokenization.ttl_cache import (
    LIFETIME_S,
    MAX_SHARE,
    Digest,
    PartitionKey,
    TtlCache,
    digest,
)
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import TOKENS
from tests.fakes.polling import until

ADAS, GUSS = PartitionKey(b"a" * 32), PartitionKey(b"g" * 32)
MAX_WEIGHT = 1_000


def _memory(clock: FakeClock) -> TtlCache[str]:
    return TtlCache(clock, max_weight=MAX_WEIGHT, weigh=len)


def _put(memory: TtlCache[str], holder: PartitionKey, number: int, size: int = 1) -> bool:
    """Return True if the value had to be computed."""
    made = []

    def make() -> str:
        made.append(number)
        return "x" * size

    memory.get_or_compute(Digest(b"%d" % number), make, holder=holder)
    return bool(made)


def _weight(memory: TtlCache[str]) -> int:
    return sum(
        len(value) for of in memory._of.values() for value in (*of.young.values(), *of.old.values())
    )


def test_the_same_text_has_another_digest_for_each_holder() -> None:
    assert digest("text", ADAS) == digest("text", ADAS)
    assert digest("text", ADAS) != digest("text", GUSS)


def test_it_is_bounded_by_size() -> None:
    memory = _memory(FakeClock())

    for number in range(200):
        _put(memory, PartitionKey(b"%d" % (number % 20)), number, size=50)
        assert memory._weight == _weight(memory) <= MAX_WEIGHT + 50


def test_one_holder_has_a_quarter_and_displaces_nobody_elses() -> None:
    memory = _memory(FakeClock())
    _put(memory, ADAS, 0)

    for number in range(200):
        _put(memory, GUSS, number, size=20)

    assert _weight(memory) <= MAX_WEIGHT * MAX_SHARE + 2 * 20 + 1
    assert not _put(memory, ADAS, 0)


def test_what_is_used_again_weighs_once() -> None:
    memory = _memory(FakeClock())
    for number in (*range(8), 0, 1, *range(8, 14), 0, 1):
        _put(memory, ADAS, number, size=20)

    assert memory._weight == _weight(memory)
    assert not _put(memory, ADAS, 0, size=20)


def test_it_is_forgotten_in_time_though_nobody_asks() -> None:
    clock = FakeClock()
    memory = _memory(clock)
    _put(memory, ADAS, 0)

    clock.pass_s(2 * LIFETIME_S)
    memory.evict_expired()

    assert (len(memory), memory._weight, memory._of) == (0, 0, {})


def test_being_late_once_does_not_prolong_it() -> None:
    clock = FakeClock()
    memory = _memory(clock)
    _put(memory, ADAS, 0)

    clock.pass_s(1.9 * LIFETIME_S)
    memory.evict_expired()
    clock.pass_s(0.1 * LIFETIME_S)
    memory.evict_expired()

    assert len(memory) == 0


async def test_every_writer_forgets_what_it_holds() -> None:
    clock = FakeClock()
    writer = PromptWriter(TOKENS, model="demo", max_context_tokens=8_192, clock=clock)
    writer.scores.get_or_compute(Digest(b"k"), lambda: 1.0, holder=ADAS)
    clock.pass_s(2 * LIFETIME_S)

    task = asyncio.create_task(evict_expired_forever([writer], every_s=0.0))
    await until(lambda: len(writer.scores) == 0)

    task.cancel()
