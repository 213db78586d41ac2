"""generate: token counts of several attempts, and engines that do not count while they stream."""

from dataclasses import replace

from inference.completion.generation_options import TimeLimits
from inference.pools.engine import EngineChunk, EngineStop
from inference.pools.generate import generate
from inference.pools.health.replica_states import ReplicaStates
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.pools import make_engine_request, make_pool
from tests.fakes.requests import make_trace

ONE, TWO = make_pool("http://one:1", "http://two:1").replicas
WITH_FALLBACK = make_engine_request(replica=ONE, fallback_replicas=(TWO,))


class _Characters:
    """A tokenizer with one token per character."""

    def encode(self, text: str) -> list[int]:
        return [ord(character) for character in text]


async def test_the_chunks_of_all_attempts_count_the_tokens_of_the_whole_completion() -> None:
    engine = FakeEngine(chunks_of("c", "d"), torn={ONE.url: chunks_of("a", "b", stop=None)})

    async with generate(
        engine, WITH_FALLBACK, ReplicaStates(FakeClock()), make_trace(), _Characters()
    ) as chunks:
        counts = [chunk.generated_tokens async for chunk in chunks]

    assert counts == [1, 2, 3, 4]


async def test_the_clients_time_limit_begins_with_text_that_has_no_token_count() -> None:
    engine = FakeEngine([EngineChunk("a", generated_tokens=0, stop=None)], hangs=True)
    # Without the limit `generation_ms`, the request would end with an error after a second.
    request = replace(WITH_FALLBACK, time_limits=TimeLimits(generation_ms=20), max_duration_s=1.0)

    async with generate(
        engine, request, ReplicaStates(FakeClock()), make_trace(), _Characters()
    ) as chunks:
        parts = [(chunk.text, chunk.stop) async for chunk in chunks]

    assert parts == [("a", None), ("", EngineStop.LENGTH)]
