"""The feed of KV events, with which vLLM reports the blocks in its prefix cache.

The publisher in these tests numbers, loses and replays batches of events as vLLM does.
"""

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
from inference.prefix_cache.cache_index import BlockHasher, ReplicaBlocks
from inference.prefix_cache.kv_event_feed import (
    BatchSequence,
    KvEventFeed,
    KvEventPublication,
    SequenceStatus,
)
from tests.fakes.polling import wait_until

SALT = CacheSalt("a" * 64)
END = (-1).to_bytes(8, "big", signed=True)  # with this number, vLLM ends a replay


def _batch(block: int) -> bytes:
    """Return a batch that stores one block of four tokens, from a separate prompt."""
    event: dict[str, Any] = {"type": "BlockStored", "block_hashes": [block]}
    event |= {"parent_block_hash": None, "token_ids": [block] * 4, "block_size": 4}
    event |= {"medium": "GPU", "extra_keys": [[SALT]]}
    return msgspec.msgpack.encode([0.0, [event], 0])  # a time, the events, an unused number


@dataclass
class Engine:
    """Publishes and replays batches, and has the blocks that the feed stores for its replica."""

    publisher: zmq.asyncio.Socket
    blocks: ReplicaBlocks = field(default_factory=lambda: ReplicaBlocks(BlockHasher()))
    replayable: list[tuple[int, bytes]] = field(default_factory=list)  # number and batch
    num_replays: int = 0

    async def publish(self, *numbers: int, is_lost: bool = False) -> None:
        """Publish batches, each with a block that has the batch's number.

        A lost batch is not sent, but can be replayed.
        """
        for number in numbers:
            self.replayable.append((number, _batch(number)))
            if not is_lost:
                await self.send(number, _batch(number))

    async def send(self, number: int, payload: bytes) -> None:
        # The first part is the topic, which is empty.
        await self.publisher.send_multipart([b"", number.to_bytes(8, "big"), payload])

    async def replay(self, router: zmq.asyncio.Socket) -> None:
        """Respond to requests for a replay until cancelled."""
        while True:
            client, _, first = await router.recv_multipart()
            self.num_replays += 1
            # A message has the client, an empty part as separator, the topic, a number and a batch.
            for number, payload in self.replayable:
                if number >= int.from_bytes(first, "big"):
                    response = [client, b"", b"", number.to_bytes(8, "big"), payload]
                    await router.send_multipart(response)
            await router.send_multipart([client, b"", b"", END, b""])

    async def wait_for_blocks(self, num_blocks: int) -> None:
        await wait_until(lambda: len(self.blocks) == num_blocks)


@asynccontextmanager
async def _engine(
    *, has_replay: bool, earlier_numbers: tuple[int, ...] = ()
) -> AsyncIterator[Engine]:
    """Run an engine that published the batches `earlier_numbers` before the feed started."""
    context = zmq.asyncio.Context.instance()
    publisher, router = context.socket(zmq.XPUB), context.socket(zmq.ROUTER)
    ports = [socket.bind_to_random_port("tcp://127.0.0.1") for socket in (publisher, router)]
    events, replay = (f"tcp://127.0.0.1:{port}" for port in ports)
    earlier_batches = [(number, _batch(number)) for number in earlier_numbers]
    engine = Engine(publisher, replayable=earlier_batches)
    feed = KvEventFeed(
        KvEventPublication("one", events, replay if has_replay else None), engine.blocks
    )
    tasks = [asyncio.create_task(engine.replay(router)), asyncio.create_task(feed.run())]
    try:
        await publisher.recv()  # the subscription message
        if has_replay:
            await wait_until(lambda: engine.num_replays == 1)
        yield engine
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        publisher.close(linger=0)
        router.close(linger=0)


async def test_published_blocks_are_applied() -> None:
    async with _engine(has_replay=False) as engine:
        await engine.publish(0, 1, 2)

        await engine.wait_for_blocks(3)


async def test_earlier_blocks_are_replayed() -> None:
    async with _engine(has_replay=True, earlier_numbers=(0, 1, 2)) as engine:
        await engine.publish(3)

        await engine.wait_for_blocks(4)


async def test_lost_blocks_are_replayed() -> None:
    async with _engine(has_replay=True) as engine:
        await engine.publish(0)
        await engine.publish(1, 2, is_lost=True)
        await engine.publish(3)

        await engine.wait_for_blocks(4)


async def test_a_gap_that_cannot_be_replayed_resets_the_replica() -> None:
    async with _engine(has_replay=False) as engine:
        await engine.publish(0, 1)
        await engine.wait_for_blocks(2)
        await engine.publish(2, is_lost=True)
        await engine.publish(3)

        await engine.wait_for_blocks(1)  # only block 3, published after the reset


async def test_an_engine_that_restarts_its_numbering_has_lost_its_cache() -> None:
    async with _engine(has_replay=True) as engine:
        await engine.publish(0, 1, 2)
        await engine.wait_for_blocks(3)
        engine.replayable.clear()
        await engine.publish(0)

        await engine.wait_for_blocks(1)


async def test_a_malformed_batch_resets_the_replica_and_the_feed_continues() -> None:
    async with _engine(has_replay=False) as engine:
        await engine.publish(0, 1)
        await engine.wait_for_blocks(2)
        await engine.send(2, b"garbage")
        await engine.publish(3)

        await engine.wait_for_blocks(1)


@pytest.mark.parametrize(
    ("replayed", "live", "statuses"),
    [
        ([], [0, 1], [SequenceStatus.NEXT, SequenceStatus.NEXT]),
        ([], [5], [SequenceStatus.GAP]),
        ([0, 1, 2], [1, 2, 3], [SequenceStatus.SEEN, SequenceStatus.SEEN, SequenceStatus.NEXT]),
        ([], [0, 1, 0], [SequenceStatus.NEXT, SequenceStatus.NEXT, SequenceStatus.RESTART]),
    ],
)
def test_the_number_of_a_batch_decides_its_status(
    replayed: list[int], live: list[int], statuses: list[SequenceStatus]
) -> None:
    sequence = BatchSequence()
    for number in replayed:
        sequence.mark_applied(number)

    checked = []
    for number in live:
        checked.append(sequence.check(number))
        if number >= sequence.expected:
            sequence.mark_applied(number)

    assert checked == statuses
