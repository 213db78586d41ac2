"""A separate gateway at the session's real engine: a real process with its own Valkey and journal.

A test may kill the gateway or Valkey. It can read every usage record, because no worker consumes
the records.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast

import aiohttp
import redis
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from caret.client.websocket_client import CompletionStream
from caret.contracts.usage import (
    USAGE_FIELD,
    USAGE_STREAM,
    CompletionRecord,
    UsageRecord,
    decode_records,
)
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.engines.pools_file import ReplicaEntry
from caret.local.processes.process_tag import tag_environment
from caret.local.processes.service import CommandService, await_ready
from inference.recording.journal import read_frames
from tenants.fleet.pools.scraping.metric_samples import parse_metrics
from tests.benchmarks.engine_metrics import num_running, read_metric
from tests.benchmarks.installation import SLUGS, Home, build_gateway_service, publish_tenant
from tests.stack.ports import free_ports

Frame = dict[str, Any]
Entries = list[tuple[bytes, dict[bytes, bytes]]]  # of a Redis stream
TIMEOUT_S: Final = 60.0  # for a real engine on cores that others use too
_POLL_S: Final = 0.1  # a condition often reads all metrics of a gateway
# An engine that is not stopped writes more tokens of a `long_frame` after its first text.
_MAX_TOKENS_UNTIL_IDLE: Final = 80


class PatientStream(CompletionStream):
    """A stream that raises TimeoutError if a frame does not arrive in TIMEOUT_S."""

    async def receive(self) -> Frame:
        async with asyncio.timeout(TIMEOUT_S):
            return await super().receive()


@dataclass(slots=True)
class Site:
    """A running gateway with its Valkey, and an API key of each of two tenants."""

    url: str
    metrics_url: str
    engine_url: str
    home: Home
    valkey: EmbeddedValkey
    gateway: CommandService
    acme_key: str = field(repr=False)
    globex_key: str = field(repr=False)
    num_ids: int = 0

    @asynccontextmanager
    async def stream(self, key: str | None = None) -> AsyncIterator[CompletionStream]:
        async with self.open_websocket(key) as socket:
            yield PatientStream(socket)

    def connect_websocket(
        self, headers: dict[str, str], subprotocols: Sequence[str] = ("caret.v1",), **more: Any
    ) -> connect:
        return connect_websocket(self.url, headers, subprotocols, **more)

    def open_websocket(self, key: str | None = None) -> connect:
        return self.connect_websocket({"Authorization": f"Bearer {key or self.acme_key}"})

    @asynccontextmanager
    async def http(self, key: str | None = None) -> AsyncIterator[aiohttp.ClientSession]:
        """Open an HTTP session with this API key; None: acme's key, "": no key."""
        headers = {"Authorization": f"Bearer {self.acme_key if key is None else key}"}
        async with aiohttp.ClientSession(self.url, headers=headers) as session:
            yield session

    def new_id(self) -> str:
        self.num_ids += 1
        return f"id-{self.num_ids}"

    async def metrics(self) -> str:
        """Return the page that Prometheus reads."""
        async with aiohttp.ClientSession() as session, session.get(self.metrics_url) as response:
            assert response.status == 200
            return await response.text()

    async def num_running(self) -> int:
        return await num_running(self.engine_url)

    async def becomes_idle(self) -> bool:
        """Return True if the engine becomes idle before it has written many more tokens.

        It would write more for a completion of `long_frame` that nobody stops. A time limit instead
        would depend on the speed of the machine.
        """
        before = await self._num_generated()
        is_idle = await wait_until(self._is_idle)
        return is_idle and await self._num_generated() - before <= _MAX_TOKENS_UNTIL_IDLE

    async def _num_generated(self) -> float:
        """Return how many tokens the engine has written since its start."""
        return await read_metric(self.engine_url, "vllm:generation_tokens_total")

    async def _is_idle(self) -> bool:
        return await self.num_running() == 0

    def records(self) -> list[UsageRecord]:
        """Return all delivered records, in the order of delivery.

        A gateway may deliver a record several times, for example if it is stopped while it sends.
        Such a record is returned once.
        """
        return [record for batch in self._delivered_batches() for record in decode_records(batch)]

    def _delivered_batches(self) -> list[bytes]:
        with redis.Redis.from_url(self.home.paths.redis_url.read_text().strip()) as connection:
            entries = cast(Entries, connection.xrange(USAGE_STREAM))
        return list(dict.fromkeys(fields[USAGE_FIELD.encode()] for _, fields in entries))

    def journaled_batches(self) -> list[bytes]:
        """Return the batches in the journal, each of one record, with duplicates if there are any.

        The journal keeps batches until they are ingested. In most tests, nothing is ingested.
        """
        batches: list[bytes] = []
        for path in sorted(self.home.paths.journal.glob("*.log")):
            with suppress(FileNotFoundError):  # the gateway has just deleted it
                batches += read_frames(path.read_bytes())
        return batches

    async def record_of(self, request_id: str) -> CompletionRecord:
        """Return the record of this completion, once it is delivered.

        A stopped gateway may have delivered it twice. Assert that both are equal.
        """
        records: list[CompletionRecord] = []

        async def is_there() -> bool:
            records[:] = [
                record
                for record in self.records()
                if isinstance(record, CompletionRecord) and record.request_id == request_id
            ]
            return bool(records)

        assert await wait_until(is_there), "the record was not delivered"
        assert all(record == records[0] for record in records)
        return records[0]

    async def wait_for_deliveries(self) -> None:
        """Wait until no completion is in flight and all records in the journal are delivered."""
        assert await wait_until(self._are_completions_recorded), "a completion did not end"
        journaled = set(self.journaled_batches())

        async def are_delivered() -> bool:
            return journaled <= set(self._delivered_batches())

        assert await wait_until(are_delivered), "not all records were delivered"

    async def _are_completions_recorded(self) -> bool:
        """Return True if no completion is in flight.

        The second answer proves it: a completion is recorded soon after it stops to count, in the
        same event loop.
        """
        pages = [await self.metrics(), await self.metrics()]
        return not any(parse_metrics(page).sum("caret_completions_in_flight") for page in pages)

    async def num_records(self) -> int:
        """Wait until the records of all ended completions are delivered, and count all records."""
        await self.wait_for_deliveries()
        return len(self.records())

    async def records_after(self, num_before: int, *, count: int = 1) -> list[CompletionRecord]:
        """Wait for the `count` records after the first `num_before`, and return them.

        Assert that there are no further records, and that all are records of completions.
        """

        async def are_there() -> bool:
            return len(self.records()) >= num_before + count

        assert await wait_until(are_there), "not all records were delivered"
        new_records = self.records()[num_before:]
        completions = [record for record in new_records if isinstance(record, CompletionRecord)]
        assert len(completions) == len(new_records) == count
        return completions

    def launch_gateway(self) -> None:
        self.gateway.launch()
        await_ready(self.gateway)


@contextmanager
def start_site(
    home: Home,
    engine_url: str,
    *,
    replicas: Sequence[ReplicaEntry] = (),
    additions_from: Sequence[str] = (),
    edit_format: str = "",
) -> Iterator[Site]:
    """Run a gateway whose pools have these replicas; without any, the engine is the only replica.

    `additions_from` lists the networks and host names at which operators may add replicas.
    `edit_format` is that of the quality pool's model; "": it has none.
    """
    port, metrics_port = free_ports(2)
    with EmbeddedValkey(home.paths, tag_environment=tag_environment(home.tag)) as valkey:
        acme_key, globex_key = (publish_tenant(home.paths, slug) for slug in SLUGS)
        site = Site(
            url=f"http://127.0.0.1:{port}",
            metrics_url=f"http://127.0.0.1:{metrics_port}/metrics",
            engine_url=engine_url,
            home=home,
            valkey=valkey,
            gateway=build_gateway_service(
                home,
                port=port,
                replicas=replicas or [engine_url],
                metrics_port=metrics_port,
                additions_from=additions_from,
                edit_format=edit_format,
                has_token_healing=True,
            ),
            acme_key=acme_key,
            globex_key=globex_key,
        )
        site.launch_gateway()
        try:
            yield site
        finally:
            site.gateway.child.stop()


def connect_websocket(
    gateway_url: str,
    headers: dict[str, str],
    subprotocols: Sequence[str] = ("caret.v1",),
    *,
    path: str = "/v1/stream",
    **options: Any,
) -> connect:
    """Return a WebSocket as a third-party client opens it.

    Entering it raises InvalidStatus if the gateway refuses the connection.
    """
    return connect(
        gateway_url.replace("http", "ws", 1) + path,
        subprotocols=[Subprotocol(name) for name in subprotocols] or None,
        additional_headers=headers,
        compression=None,
        max_size=None,
        proxy=None,
        # A test that leaves in mid-stream does not wait for the gateway's close frame, which comes
        # after all data.
        close_timeout=0.5,
        **options,
    )


async def wait_until(condition: Any, *, timeout_s: float = TIMEOUT_S) -> bool:
    """Poll the condition and return True if it became true in time."""
    deadline_s = time.monotonic() + timeout_s
    while not await condition():
        if time.monotonic() > deadline_s:
            return False
        await asyncio.sleep(_POLL_S)
    return True


async def request_completion(stream: CompletionStream, frame: Frame) -> tuple[str, Frame]:
    """Return the text and the `done` frame of one completion."""
    text, done = "", {}
    async for answer in stream.complete(frame):
        if answer["type"] == "delta":
            text += answer["text"]
        else:
            done = answer
    return text, done


async def receive(socket: ClientConnection) -> Frame:
    async with asyncio.timeout(TIMEOUT_S):
        frame: Frame = json.loads(await socket.recv())
    return frame
