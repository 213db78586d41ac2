"""The shipper sends usage records to a real Valkey, and tells the journal which ones arrived.

The backlog is the entries of the Redis stream that the control plane has not yet deleted.
"""

from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from caret.contracts.usage import USAGE_STREAM, encode_records
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.paths import EmbeddedPaths
from inference.recording.journal import ShipmentReceipt
from inference.recording.redis_shipper import RedisShipper
from tests.fakes.usage import make_record

BATCHES = [encode_records([make_record(number)]) for number in range(2)]


@pytest.fixture
def paths(tmp_path: Path) -> EmbeddedPaths:
    return EmbeddedPaths(tmp_path / "home")


def _connect(paths: EmbeddedPaths) -> Redis:
    return Redis.from_url(paths.redis_url.read_text().strip())


def _entry_id(receipt: ShipmentReceipt) -> str:
    milliseconds, number = receipt.entry
    return f"{milliseconds}-{number}"


async def test_the_backlog_starts_with_the_oldest_entry_not_deleted(paths: EmbeddedPaths) -> None:
    with EmbeddedValkey(paths):
        async with _connect(paths) as redis:
            shipper = RedisShipper(redis)
            first = await shipper.send_batches(BATCHES[:1])
            second = await shipper.send_batches(BATCHES[1:])
            before = await shipper.read_backlog()
            await redis.xdel(USAGE_STREAM, _entry_id(first))
            after = await shipper.read_backlog()
            await redis.xdel(USAGE_STREAM, _entry_id(second))
            end = await shipper.read_backlog()

    assert (before.oldest, after.oldest, end.oldest) == (first.entry, second.entry, None)
    assert {first.server, second.server, before.server, end.server} == {first.server}


async def test_a_receipt_names_the_last_entry_sent(paths: EmbeddedPaths) -> None:
    with EmbeddedValkey(paths):
        async with _connect(paths) as redis:
            receipt = await RedisShipper(redis).send_batches(BATCHES)
            newest: Any = await redis.xrevrange(USAGE_STREAM, count=1)

    assert newest[0][0].decode() == _entry_id(receipt)


async def test_a_restarted_server_has_another_identity(paths: EmbeddedPaths) -> None:
    with EmbeddedValkey(paths):
        async with _connect(paths) as redis:
            receipt = await RedisShipper(redis).send_batches(BATCHES)
    with EmbeddedValkey(paths):
        async with _connect(paths) as redis:
            backlog = await RedisShipper(redis).read_backlog()

    assert backlog.server != receipt.server
    assert backlog.oldest is not None  # Valkey has read the entries from its file
