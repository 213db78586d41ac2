"""`manage.py relay`: the process for a region without a control plane.

The relay copies snapshots from the home region and forwards usage records to it. A region needs one
relay. A second one would repeat the same work, which is harmless.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, cast

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from caret.contracts.usage import USAGE_STREAM
from caret.foundation.concurrency.wait_for import keep_cancellations
from caret.foundation.environment import env_int, env_secret, env_text
from caret.foundation.home_dir import find_home_folder
from caret.foundation.log_config import configure_logging
from caret.relay.snapshot_replication import SnapshotReplicator

BATCH_ENTRIES: Final = 50
Entry = tuple[bytes, dict[bytes, bytes]]  # of a Redis stream: its ID and its fields


class UsageForwarder:
    """Moves usage records from the region's stream to the stream of the home region."""

    def __init__(self, home_redis: Redis, local_redis: Redis) -> None:
        self._home_redis = home_redis
        self._local_redis = local_redis

    async def forward(self) -> int:
        """Forward a batch of entries and return their number.

        After an error, the entries stay in the region's stream. Raises RedisError, OSError.
        """
        entries = cast(
            "list[Entry]",
            await cast(Any, self._local_redis.xrange(USAGE_STREAM, count=BATCH_ENTRIES)),
        )
        if not entries:
            return 0
        async with self._home_redis.pipeline(transaction=False) as pipeline:
            for _, fields in entries:
                _ = pipeline.xadd(USAGE_STREAM, cast(Any, fields))
            await pipeline.execute()
        # If the task is cancelled here, the entries are forwarded again. Ingestion counts each
        # record once.
        await self._local_redis.xdel(USAGE_STREAM, *(identifier for identifier, _ in entries))
        return len(entries)


POLL_S: Final = 0.25  # delays revocations in this region, in addition to the network
_MAX_RETRY_S: Final = 5.0  # longest pause after an error
# For a connection that no longer responds. It is longer than any network latency.
_TIMEOUT_S: Final = 5.0
log = structlog.get_logger(__name__)


def main() -> int:
    """Run until SIGTERM or SIGINT.

    Raises BadSetting.
    """
    local_url = env_secret("REDIS_URL", default_file=find_home_folder() / "secrets" / "redis-url")
    home_url = env_secret("CARET_HOME_REGION_REDIS_URL")
    region = env_text("CARET_REGION", "local")
    max_disconnect_s = env_int("CARET_RELAY_MAX_DISCONNECT_S", 7_200, low=10, high=604_800)
    configure_logging("relay")
    keep_cancellations()
    asyncio.run(_run_relay(home_url, local_url, region=region, max_disconnect_s=max_disconnect_s))
    return 0


async def _run_relay(home_url: str, local_url: str, *, region: str, max_disconnect_s: int) -> None:
    # Two connections to the home region: a large snapshot, or a connection that hangs, must not
    # delay usage records.
    async with (
        _make_redis(home_url) as snapshot_connection,
        _make_redis(home_url) as usage_connection,
        _make_redis(local_url) as local_redis,
    ):
        replicator = SnapshotReplicator(
            snapshot_connection, local_redis, region=region, max_disconnect_s=max_disconnect_s
        )
        forwarder = UsageForwarder(usage_connection, local_redis)
        tasks = [
            asyncio.create_task(_repeat_step("snapshots", replicator.sync)),
            asyncio.create_task(_repeat_step("usage", forwarder.forward)),
        ]
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, _cancel_tasks, tasks)
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)


async def _repeat_step(name: str, step: Callable[[], Awaitable[int | None]]) -> None:
    """Repeat `step`, which returns the number of entries that it processed, or None.

    Pause after a step that returned 0 or None. After a connection error, retry the step with a
    growing pause. The other task is not affected.
    """
    pause_s = POLL_S
    while True:
        try:
            num_processed = await step()
        except (RedisError, OSError) as error:
            log.warning("relay.disconnected", task=name, error=type(error).__name__)
            pause_s = min(2 * pause_s, _MAX_RETRY_S)
            await asyncio.sleep(pause_s)
            continue
        pause_s = POLL_S
        if not num_processed:
            await asyncio.sleep(POLL_S)


def _make_redis(url: str) -> Redis:
    # No retries by the client: `_repeat_step` retries.
    return Redis.from_url(
        url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S, retry=None
    )


def _cancel_tasks(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
