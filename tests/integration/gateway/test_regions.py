"""Two regions with their own Valkey, and a relay between them over a connection that can be cut.

Relay and gateway are real processes.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import msgspec
import pytest
import redis

from caret.client.websocket_client import GatewayRefused, open_stream
from caret.contracts.snapshot import VERSIONS, TenantSnapshot, TenantStatus
from caret.contracts.usage import USAGE_FIELD, USAGE_STREAM, CompletionRecord, decode_records
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.paths import REPOSITORY
from caret.local.processes.child_process import ChildProcess, ChildSpec, dying_with_parent
from caret.local.processes.process_tag import tag_environment
from tests.benchmarks.installation import Home, create_home, new_tenant, publish, root_secret_of
from tests.fakes.tcp_proxy import FaultProxy, fault_proxy
from tests.functional.gateway.gateway_stack import (
    Entries,
    Site,
    request_completion,
    start_site,
    wait_until,
)

PATIENCE_S = 20.0  # the relay times out after 5 s without a response, and waits as long
EAST, WEST = "east", "west"


@dataclass
class Parts:
    home: Home  # the region of the control plane
    site: Site  # a gateway in the east
    proxy: FaultProxy
    here: redis.Redis
    home_redis: redis.Redis
    num_tenants: int = 0
    snapshots: dict[str, TenantSnapshot] = field(default_factory=dict)

    def tenant(self, region: str | None) -> tuple[TenantSnapshot, str]:
        """Publish a tenant in the home region and return its one key."""
        self.num_tenants += 1
        secret = root_secret_of(self.site.home.paths)
        snapshot, key = new_tenant(f"tenant-{self.num_tenants}", root_secret=secret)
        snapshot = msgspec.structs.replace(snapshot, region=region)
        publish(self.home.paths, snapshot)
        return snapshot, key

    def change(self, snapshot: TenantSnapshot, **fields: object) -> None:
        newer = msgspec.structs.replace(snapshot, version=snapshot.version + 1, **fields)
        publish(self.home.paths, newer)

    async def refusal(self, key: str) -> str:
        """Return the code with which the key is rejected, or "" if it is accepted."""
        try:
            async with open_stream(self.site.url, key) as stream:
                await request_completion(stream, self._frame())
        except GatewayRefused as error:
            return error.code
        return ""

    async def becomes(self, key: str, code: str) -> bool:
        async def is_so() -> bool:
            return await self.refusal(key) == code

        return await wait_until(is_so, patience_s=PATIENCE_S)

    async def complete(self, key: str, count: int) -> list[str]:
        async with self.site.stream(key) as stream:
            return [
                (await request_completion(stream, self._frame()))[1]["meta"]["request_id"]
                for _ in range(count)
            ]

    def _frame(self) -> dict[str, object]:
        frame = {"type": "complete", "id": self.site.new_id(), "mode": "fim", "prefix": "a = "}
        return frame | {"suffix": "\n", "max_tokens": 2}

    def delivered_ids(self) -> list[str]:
        """Return the IDs of delivered completions, duplicates included."""
        entries = cast(Entries, self.home_redis.xrange(USAGE_STREAM))
        return [
            str(record.request_id)
            for _, fields in entries
            for record in decode_records(fields[USAGE_FIELD.encode()])
            if isinstance(record, CompletionRecord)
        ]

    async def are_delivered(self, ids: list[str]) -> bool:
        async def is_so() -> bool:
            return set(ids) <= set(self.delivered_ids()) and self.here.xlen(USAGE_STREAM) == 0

        return await wait_until(is_so, patience_s=PATIENCE_S)


@pytest.fixture(scope="module")
def parts(fake_engine_url: str) -> Iterator[Parts]:
    with create_home() as home, create_home() as region:
        url = urlsplit(home.paths.redis_url.read_text().strip())
        region.environment.update(CARET_REGION=EAST, CARET_BEHIND_RELAY="True")
        with (
            EmbeddedValkey(home.paths, tag_environment=tag_environment(home.mark)),
            fault_proxy(url.path) as proxy,
        ):
            # A home region without any snapshot may have lost its data: nothing would be trusted.
            publish(home.paths, new_tenant("first", root_secret=root_secret_of(region.paths))[0])
            relay = ChildProcess(_relay(region, f"redis://:{url.password}@127.0.0.1:{proxy.port}"))
            relay.start()
            try:
                with (
                    start_site(region, fake_engine_url) as site,
                    redis.Redis.from_url(region.paths.redis_url.read_text().strip()) as here,
                    redis.Redis.from_url(url.geturl()) as home_redis,
                ):
                    yield Parts(home, site, proxy, here, home_redis)
            finally:
                relay.stop()


def _relay(region: Home, home_url: str) -> ChildSpec:
    return ChildSpec(
        name="relay",
        command=dying_with_parent((sys.executable, "manage.py", "relay")),
        log_file=region.paths.logs / "relay.log",
        environment=region.environment | {"CARET_HOME_REGION_REDIS_URL": home_url},
        folder=REPOSITORY,
    )


async def test_a_tenant_is_served_in_its_own_region(parts: Parts) -> None:
    _, key = parts.tenant(EAST)

    assert await parts.becomes(key, "")


async def test_a_tenant_without_a_region_is_served_everywhere(parts: Parts) -> None:
    _, key = parts.tenant(None)

    assert await parts.becomes(key, "")


async def test_a_tenant_of_another_region_is_not_replicated_here(parts: Parts) -> None:
    stranger, key = parts.tenant(WEST)
    _, later = parts.tenant(EAST)
    assert await parts.becomes(later, "")  # so the relay has seen both

    assert await parts.refusal(key) == "invalid_api_key"
    assert not parts.here.hexists(VERSIONS, stranger.tenant_id)


async def test_a_tenant_that_moved_to_another_region_is_refused_with_the_reason(
    parts: Parts,
) -> None:
    snapshot, key = parts.tenant(EAST)
    assert await parts.becomes(key, "")

    parts.change(snapshot, region=WEST)

    assert await parts.becomes(key, "region_not_allowed")


async def test_usage_records_are_delivered_to_the_home_region(parts: Parts) -> None:
    _, key = parts.tenant(EAST)
    assert await parts.becomes(key, "")

    ids = await parts.complete(key, 10)

    assert await parts.are_delivered(ids)


async def test_a_disconnection_loses_neither_records_nor_changes(
    parts: Parts,
) -> None:
    snapshot, key = parts.tenant(EAST)
    assert await parts.becomes(key, "")

    parts.proxy.is_cut = True
    parts.change(snapshot, status=TenantStatus.SUSPENDED)
    ids = await parts.complete(key, 20)
    delivered_meanwhile = set(ids) & set(parts.delivered_ids())
    parts.proxy.is_cut = False

    assert await parts.becomes(key, "tenant_suspended")
    assert await parts.are_delivered(ids)
    assert delivered_meanwhile == set()


async def test_a_lost_response_causes_a_second_delivery_of_the_same_records(parts: Parts) -> None:
    _, key = parts.tenant(EAST)
    assert await parts.becomes(key, "")

    ids: list[str] = []

    async def any_delivered() -> bool:
        return bool(set(ids) & set(parts.delivered_ids()))

    # If the relay reconnects meanwhile, its AUTH gets no response and it sends nothing.
    for _ in range(5):
        assert await parts.are_delivered(await parts.complete(key, 1))
        parts.proxy.drops_responses = True
        ids = await parts.complete(key, 10)
        is_there = await wait_until(any_delivered, patience_s=4.0)
        parts.proxy.drops_responses = False
        if is_there:
            break

    assert await parts.are_delivered(ids)
    delivered = [each for each in parts.delivered_ids() if each in set(ids)]
    assert len(delivered) > len(ids)  # ingestion counts each once (test_ingest)
    assert set(delivered) == set(ids)
