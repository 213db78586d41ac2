"""A real gateway whose pools are a name's addresses, with two engines and a fake DNS server."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from caret.client.websocket_client import CompletionStream
from tenants.fleet.pools.scraping.metric_samples import parse
from tests.benchmarks.installation import create_home
from tests.fakes.dns_server import DnsServer, dns_server_in_thread
from tests.fakes.scripted_engine import ScriptedEngine, scripted_engine
from tests.functional.gateway.gateway_stack import (
    Frame,
    Site,
    request_completion,
    start_site,
    wait_until,
)
from tests.stack.ports import free_port

NAME = "engines.caret.test"
ONE, TWO = "127.0.0.1", "127.0.0.2"
PATHS = [f"src/module_{number}.py" for number in range(12)]
PATIENCE_S = 15.0  # a round comes every five seconds


@dataclass(frozen=True, slots=True)
class Parts:
    site: Site
    dns: DnsServer
    one: ScriptedEngine
    two: ScriptedEngine

    async def members(self) -> set[str]:
        samples = parse(await self.site.metrics())
        return {
            labels["replica"].partition(":")[0]
            for labels, _ in samples.all_values("caret_pool_replica_info", pool="demo-fast")
        }

    async def rejected_replicas(self) -> dict[str, str]:
        samples = parse(await self.site.metrics())
        return {
            labels["replica"].partition(":")[0]: labels["reason"]
            for labels, _ in samples.all_values("caret_replica_rejected", pool="demo-fast")
        }

    async def wait_for_members(self, members: set[str]) -> bool:
        async def is_so() -> bool:
            return await self.members() == members and not await self.rejected_replicas()

        return await wait_until(is_so, patience_s=PATIENCE_S)

    async def serving_replicas(self) -> set[str]:
        """Return the replicas that serve files with many different paths."""
        found = set()
        async with self.site.stream() as stream:
            for path in PATHS:
                frame: Frame = {"mode": "fim", "prefix": "a = ", "suffix": "\n", "path": path}
                frame |= {"type": "complete", "id": self.site.new_id(), "max_tokens": 1}
                found.add(
                    (await request_completion(stream, frame))[1]["meta"]["replica"].partition(":")[
                        0
                    ]
                )
        return found


@pytest.fixture(scope="module")
def parts() -> Iterator[Parts]:
    alike = {"root": "/models/demo", "block_size": 32}
    with (
        dns_server_in_thread() as dns,
        scripted_engine(host=ONE, port=free_port(), **alike) as one,
        scripted_engine(host=TWO, port=int(one.url.rpartition(":")[2]), **alike) as two,
        create_home() as home,
    ):
        dns.addresses[NAME] = [ONE]
        home.environment["CARET_DNS_RESOLVER"] = f"127.0.0.1:{dns.port}"
        with start_site(home, one.url) as site:
            listed = site.home.paths.pools.read_text()
            found = listed.replace(f'replicas = ["{one.url}"]', f'discover = "{_named(one.url)}"')
            assert found != listed
            site.home.paths.pools.write_text(found)
            site.gateway.child.stop()
            site.launch_gateway()
            yield Parts(site, dns, one, two)


def _named(url: str) -> str:
    return url.replace(ONE, NAME)


@pytest.fixture(autouse=True)
async def _only_one_member(parts: Parts) -> None:
    parts.dns.is_broken, parts.two.block_size = False, 32
    parts.dns.addresses[NAME] = [ONE]
    assert await parts.wait_for_members({ONE})


async def test_the_initial_addresses_are_known_at_the_start(parts: Parts) -> None:
    assert await parts.serving_replicas() == {ONE}


async def test_a_replica_gets_requests_only_while_its_address_is_listed(parts: Parts) -> None:
    parts.dns.addresses[NAME] = [ONE, TWO]
    assert await parts.wait_for_members({ONE, TWO})
    both = await parts.serving_replicas()

    parts.dns.addresses[NAME] = [TWO]
    assert await parts.wait_for_members({TWO})

    assert both == {ONE, TWO}
    assert await parts.serving_replicas() == {TWO}


async def test_a_running_completion_finishes_on_a_removed_replica(parts: Parts) -> None:
    parts.one.wait_s = 8.0  # longer than a round
    async with parts.site.open_websocket() as socket:
        stream = CompletionStream(socket)
        frame = {"type": "complete", "id": parts.site.new_id(), "mode": "fim", "prefix": "a = "}
        begun = parts.one.num_completions
        stays = asyncio.create_task(
            request_completion(stream, frame | {"suffix": "\n", "max_tokens": 1})
        )

        async def is_under_way() -> bool:
            return parts.one.num_completions > begun

        assert await wait_until(is_under_way)
        parts.one.wait_s = 0.0
        parts.dns.addresses[NAME] = [TWO]
        assert await parts.wait_for_members({TWO})
        was_over = stays.done()
        _, done = await stays

    assert not was_over
    assert done["meta"]["replica"].startswith(ONE)
    assert done["finish_reason"] != "error"


async def test_a_replica_with_another_block_size_is_rejected_with_the_reason(parts: Parts) -> None:
    parts.two.block_size = 16
    parts.dns.addresses[NAME] = [ONE, TWO]

    async def is_refused() -> bool:
        return await parts.rejected_replicas() == {TWO: "block_size"}

    assert await wait_until(is_refused, patience_s=PATIENCE_S)
    assert await parts.members() == {ONE}
    assert await parts.serving_replicas() == {ONE}


async def test_a_failing_resolver_removes_no_replica(parts: Parts) -> None:
    parts.dns.is_broken = True
    num_before = parts.dns.num_queries

    async def was_queried() -> bool:
        return parts.dns.num_queries > num_before

    assert await wait_until(was_queried, patience_s=PATIENCE_S)
    assert await parts.serving_replicas() == {ONE}
