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

# The relay gives up after 5 s without a response, and then waits 5 s before it reconnects.
TIMEOUT_S = 60.0
EAST, WEST = "east", "west"


@dataclass
class Regions:
    home: Home  # the region of the control plane
    site: Site  # a gateway in the east
    proxy: FaultProxy
    east_redis: redis.Redis
    home_redis: redis.Redis
    num_tenants: int = 0
    snapshots: dict[str, TenantSnapshot] = field(default_factory=dict)

    def publish_tenant(self, region: str | None) -> tuple[TenantSnapshot, str]:
        """Publish a tenant in the home region; return its snapshot and its API key.

        With the region None, gateways of all regions serve the tenant.
        """
        self.num_tenants += 1
        secret = root_secret_of(self.site.home.paths)
        snapshot, key = new_tenant(f"tenant-{self.num_tenants}", root_secret=secret)
        snapshot = msgspec.structs.replace(snapshot, region=region)
        publish(self.home.paths, snapshot)
        return snapshot, key

    def publish_change(self, snapshot: TenantSnapshot, **fields: object) -> None:
        newer = msgspec.structs.replace(snapshot, version=snapshot.version + 1, **fields)
        publish(self.home.paths, newer)

    async def find_refusal(self, key: str) -> str:
        """Return the code with which the key is rejected, or "" if it is accepted."""
        try:
            async with open_stream(self.site.url, key) as stream:
                await request_completion(stream, self._frame())
        except GatewayRefused as error:
            return error.code
        return ""

    async def wait_for_refusal(self, key: str, code: str) -> bool:
        """Wait until the gateway refuses the key with this code, or accepts it ("")."""

        async def has_code() -> bool:
            return await self.find_refusal(key) == code

        return await wait_until(has_code, timeout_s=TIMEOUT_S)

    async def request_completions(self, key: str, count: int) -> list[str]:
        """Request completions one after the other, and return their request IDs."""
        request_ids = []
        async with self.site.stream(key) as stream:
            for _ in range(count):
                _, done = await request_completion(stream, self._frame())
                request_ids.append(done["meta"]["request_id"])
        return request_ids

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

    async def wait_for_delivery(self, ids: list[str]) -> bool:
        """Wait until these completions are delivered, and the relay has nothing left to deliver."""

        async def are_delivered() -> bool:
            return set(ids) <= set(self.delivered_ids()) and self.east_redis.xlen(USAGE_STREAM) == 0

        return await wait_until(are_delivered, timeout_s=TIMEOUT_S)


@pytest.fixture(scope="module")
def regions(fake_engine_url: str) -> Iterator[Regions]:
    with create_home() as home, create_home() as east:
        url = urlsplit(home.paths.redis_url.read_text().strip())
        east.environment.update(CARET_REGION=EAST, CARET_BEHIND_RELAY="True")
        with (
            EmbeddedValkey(home.paths, tag_environment=tag_environment(home.tag)),
            fault_proxy(url.path) as proxy,
        ):
            # Gateways distrust a home region without any snapshot: it may have lost its data.
            first_snapshot, _ = new_tenant("first", root_secret=root_secret_of(east.paths))
            publish(home.paths, first_snapshot)
            relay = ChildProcess(
                _build_relay(east, f"redis://:{url.password}@127.0.0.1:{proxy.port}")
            )
            relay.start()
            try:
                with (
                    start_site(east, fake_engine_url) as site,
                    redis.Redis.from_url(east.paths.redis_url.read_text().strip()) as east_redis,
                    redis.Redis.from_url(url.geturl()) as home_redis,
                ):
                    yield Regions(home, site, proxy, east_redis, home_redis)
            finally:
                relay.stop()


def _build_relay(region: Home, home_url: str) -> ChildSpec:
    return ChildSpec(
        name="relay",
        command=dying_with_parent((sys.executable, "manage.py", "relay")),
        log_file=region.paths.logs / "relay.log",
        environment=region.environment | {"CARET_HOME_REGION_REDIS_URL": home_url},
        folder=REPOSITORY,
    )


async def test_a_tenant_is_served_in_its_own_region(regions: Regions) -> None:
    _, key = regions.publish_tenant(EAST)

    assert await regions.wait_for_refusal(key, "")


async def test_a_tenant_without_a_region_is_served_everywhere(regions: Regions) -> None:
    _, key = regions.publish_tenant(None)

    assert await regions.wait_for_refusal(key, "")


async def test_a_tenant_of_another_region_is_not_replicated_here(regions: Regions) -> None:
    snapshot, key = regions.publish_tenant(WEST)
    _, later_key = regions.publish_tenant(EAST)
    assert await regions.wait_for_refusal(later_key, "")  # so the relay has read both

    assert await regions.find_refusal(key) == "invalid_api_key"
    assert not regions.east_redis.hexists(VERSIONS, snapshot.tenant_id)


async def test_a_tenant_that_moved_to_another_region_is_refused_with_the_reason(
    regions: Regions,
) -> None:
    snapshot, key = regions.publish_tenant(EAST)
    assert await regions.wait_for_refusal(key, "")

    regions.publish_change(snapshot, region=WEST)

    assert await regions.wait_for_refusal(key, "region_not_allowed")


async def test_usage_records_are_delivered_to_the_home_region(regions: Regions) -> None:
    _, key = regions.publish_tenant(EAST)
    assert await regions.wait_for_refusal(key, "")

    ids = await regions.request_completions(key, 10)

    assert await regions.wait_for_delivery(ids)


async def test_a_disconnection_loses_neither_records_nor_changes(
    regions: Regions,
) -> None:
    snapshot, key = regions.publish_tenant(EAST)
    assert await regions.wait_for_refusal(key, "")

    regions.proxy.is_cut = True
    regions.publish_change(snapshot, status=TenantStatus.SUSPENDED)
    ids = await regions.request_completions(key, 20)
    delivered_meanwhile = set(ids) & set(regions.delivered_ids())
    regions.proxy.is_cut = False

    assert await regions.wait_for_refusal(key, "tenant_suspended")
    assert await regions.wait_for_delivery(ids)
    assert delivered_meanwhile == set()


async def test_a_lost_response_causes_a_second_delivery_of_the_same_records(
    regions: Regions,
) -> None:
    _, key = regions.publish_tenant(EAST)
    assert await regions.wait_for_refusal(key, "")

    ids: list[str] = []

    async def is_any_delivered() -> bool:
        return bool(set(ids) & set(regions.delivered_ids()))

    # This is repeated, because the relay may reconnect while responses are dropped. Then it gets no
    # response to AUTH, and sends no records.
    for _ in range(5):
        assert await regions.wait_for_delivery(await regions.request_completions(key, 1))
        regions.proxy.drops_responses = True
        ids = await regions.request_completions(key, 10)
        was_any_delivered = await wait_until(is_any_delivered, timeout_s=4.0)
        regions.proxy.drops_responses = False
        if was_any_delivered:
            break

    async def are_delivered_again() -> bool:
        delivered = [record_id for record_id in regions.delivered_ids() if record_id in set(ids)]
        return set(delivered) == set(ids) and len(delivered) > len(ids)

    # Ingestion counts each record once: see test_ingest.
    assert await wait_until(are_delivered_again, timeout_s=TIMEOUT_S)
