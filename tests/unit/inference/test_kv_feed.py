"""The feed of KV events, from a publisher that numbers, loses and replays events as vLLM does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
import zmq
import zmq.asyncio

from caret.foundation.ids import CacheSalt
from inference.prefix_cache.block_hash import BlockHasher
from inference.prefix_cache.cache_index import ReplicaBlocks
from inference.prefix_cache.kv_event_feed import KvEventFeed, KvEventPublication
from inference.prefix_cache.sequence_check import BatchSequence, SequenceStatus
from tests.fakes.polling import until

SALT = CacheSalt("a" * 64)
END = (-1).to_bytes(8, "big", signed=True)


def _batch(block: int) -> bytes:
    """Return a batch that stores one block of four tokens, from a separate prompt."""
    event: dict[str, Any] = {"type": "BlockStored", "block_hashes": [block]}
    event |= {"parent_block_hash": None, "token_ids": [block] * 4, "block_size": 4}
    event |= {"medium": "GPU", "extra_keys": [[SALT]]}
    return msgspec.msgpack.encode([0.0, [event], 0])


@dataclass
class Engine:
    publisher: zmq.asyncio.Socket
    held: ReplicaBlocks = field(default_factory=lambda: ReplicaBlocks(BlockHasher()))
    kept: list[tuple[int, bytes]] = field(default_factory=list)  # for replays
    num_replays: int = 0

    async def publishes(self, *numbers: int, loses: bool = False) -> None:
        """Publish batches, each with a block that has the batch's number."""
        for number in numbers:
            self.kept.append((number, _batch(number)))
            if not loses:
                await self.sends(number, _batch(number))

    async def sends(self, number: int, payload: bytes) -> None:
        await self.publisher.send_multipart([b"", number.to_bytes(8, "big"), payload])

    async def replays(self, router: zmq.asyncio.Socket) -> None:
        while True:
            client, _, first = await router.recv_multipart()
            self.num_replays += 1
            for number, payload in self.kept:
                if number >= int.from_bytes(first, "big"):
                    answer = [client, b"", b"", number.to_bytes(8, "big"), payload]
                    await router.send_multipart(answer)
            await router.send_multipart([client, b"", b"", END, b""])

    async def waits_for(self, num_blocks: int) -> None:
        await until(lambda: len(self.held) == num_blocks)


@asynccontextmanager
async def _engine(*, replays: bool, kept: tuple[int, ...] = ()) -> AsyncIterator[Engine]:
    context = zmq.asyncio.Context.instance()
    publisher, router = context.socket(zmq.XPUB), context.socket(zmq.ROUTER)
    ports = [each.bind_to_random_port("tcp://127.0.0.1") for each in (publisher, router)]
    events, replay = (f"tcp://127.0.0.1:{port}" for port in ports)
    engine = Engine(publisher, kept=[(number, _batch(number)) for number in kept])
    feed = KvEventFeed(KvEventPublication("one", events, replay if replays else None), engine.held)
    tasks = [asyncio.create_task(engine.replays(router)), asyncio.create_task(feed.run())]
    try:
        await publisher.recv()  # the subscription message
        if replays:
            await until(lambda: engine.num_replays == 1)
        yield engine
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        publisher.close(linger=0)
        router.close(linger=0)


async def test_what_is_published_is_held() -> None:
    async with _engine(replays=False) as engine:
        await engine.publishes(0, 1, 2)

        await engine.waits_for(3)


async def test_what_was_published_before_is_replayed() -> None:
    async with _engine(replays=True, kept=(0, 1, 2)) as engine:
        await engine.publishes(3)

        await engine.waits_for(4)


async def test_what_was_lost_is_asked_for() -> None:
    async with _engine(replays=True) as engine:
        await engine.publishes(0)
        await engine.publishes(1, 2, loses=True)
        await engine.publishes(3)

        await engine.waits_for(4)


async def test_what_cannot_be_asked_for_makes_all_before_it_forgotten() -> None:
    async with _engine(replays=False) as engine:
        await engine.publishes(0, 1)
        await engine.waits_for(2)
        await engine.publishes(2, loses=True)
        await engine.publishes(3)

        await engine.waits_for(1)


async def test_an_engine_that_counts_anew_has_lost_its_cache() -> None:
    async with _engine(replays=True) as engine:
        await engine.publishes(0, 1, 2)
        await engine.waits_for(3)
        engine.kept.clear()
        await engine.publishes(0)

        await engine.waits_for(1)


async def test_garbage_makes_all_before_it_forgotten_and_the_feed_goes_on() -> None:
    async with _engine(replays=False) as engine:
        await engine.publishes(0, 1)
        await engine.waits_for(2)
        await engine.sends(2, b"garbage")
        await engine.publishes(3)

        await engine.waits_for(1)


@pytest.mark.parametrize(
    ("replayed", "live", "verdicts"),
    [
        ([], [0, 1], [SequenceStatus.NEXT, SequenceStatus.NEXT]),
        ([], [5], [SequenceStatus.GAP]),
        ([0, 1, 2], [1, 2, 3], [SequenceStatus.SEEN, SequenceStatus.SEEN, SequenceStatus.NEXT]),
        ([], [0, 1, 0], [SequenceStatus.NEXT, SequenceStatus.NEXT, SequenceStatus.RESTART]),
    ],
)
def test_numbers_say_what_became_of_the_batches(
    replayed: list[int], live: list[int], verdicts: list[SequenceStatus]
) -> None:
    sequence = BatchSequence()
    for number in replayed:
        sequence.mark_applied(number)

    judged = []
    for number in live:
        judged.append(sequence.check(number))
        if number >= sequence.expected:
            sequence.mark_applied(number)

    assert judged == verdicts
