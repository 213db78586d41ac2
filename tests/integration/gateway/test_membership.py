"""A real gateway that discovers the replicas of its pools as the addresses of a DNS name.

The DNS server and the two engines are fakes.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from caret.client.websocket_client import CompletionStream
from tenants.fleet.pools.scraping.metric_samples import parse_metrics
from tests.benchmarks.installation import create_home
from tests.fakes.dns_server import DnsServer, dns_server_in_thread
from tests.fakes.scripted_engine import ScriptedEngine, scripted_engine
from tests.functional.gateway.gateway_stack import (
    Site,
    request_completion,
    start_site,
    wait_until,
)
from tests.integration.gateway.requests import find_serving_replicas
from tests.stack.ports import free_port

NAME = "engines.caret.test"
ONE, TWO = "127.0.0.1", "127.0.0.2"  # hosts of the engines; both use the same port
TIMEOUT_S = 60.0  # the gateway resolves the name every five seconds


@dataclass(frozen=True, slots=True)
class Environment:
    site: Site
    dns: DnsServer
    first_engine: ScriptedEngine
    second_engine: ScriptedEngine

    async def read_members(self) -> set[str]:
        samples = parse_metrics(await self.site.metrics())
        return {
            labels["replica"].partition(":")[0]
            for labels, _ in samples.all_values("caret_pool_replica_info", pool="demo-fast")
        }

    async def read_rejected_replicas(self) -> dict[str, str]:
        samples = parse_metrics(await self.site.metrics())
        return {
            labels["replica"].partition(":")[0]: labels["reason"]
            for labels, _ in samples.all_values("caret_replica_rejected", pool="demo-fast")
        }

    async def wait_for_members(self, members: set[str]) -> bool:
        async def are_members() -> bool:
            return await self.read_members() == members and not await self.read_rejected_replicas()

        return await wait_until(are_members, timeout_s=TIMEOUT_S)

    async def find_serving_replicas(self) -> set[str]:
        replicas = await find_serving_replicas(self.site)
        return {replica.partition(":")[0] for replica in replicas}


@pytest.fixture(scope="module")
def environment() -> Iterator[Environment]:
    # The properties that the engines report. All replicas of a pool must report the same.
    identity = {"root": "/models/demo", "block_size": 32}
    with (
        dns_server_in_thread() as dns,
        scripted_engine(host=ONE, port=free_port(), **identity) as first,
        scripted_engine(host=TWO, port=int(first.url.rpartition(":")[2]), **identity) as second,
        create_home() as home,
    ):
        dns.addresses[NAME] = [ONE]
        home.environment["CARET_DNS_RESOLVER"] = f"127.0.0.1:{dns.port}"
        with start_site(home, first.url) as site:
            # Replace the fixed replicas in the pools file by discovery.
            static_pools = site.home.paths.pools.read_text()
            discovered_pools = static_pools.replace(
                f'replicas = ["{first.url}"]', f'discover = "{_with_dns_name(first.url)}"'
            )
            assert discovered_pools != static_pools
            site.home.paths.pools.write_text(discovered_pools)
            site.gateway.child.stop()
            site.launch_gateway()
            yield Environment(site, dns, first, second)


def _with_dns_name(url: str) -> str:
    return url.replace(ONE, NAME)


@pytest.fixture(autouse=True)
async def _only_one_member(environment: Environment) -> None:
    """Begin each test with two equal engines, of which only ONE is listed."""
    environment.dns.is_broken, environment.second_engine.block_size = False, 32
    environment.first_engine.is_held = False
    environment.dns.addresses[NAME] = [ONE]
    assert await environment.wait_for_members({ONE})


async def test_the_initial_addresses_are_known_at_the_start(environment: Environment) -> None:
    await asyncio.to_thread(environment.site.gateway.child.stop)
    await asyncio.to_thread(environment.site.launch_gateway)

    assert await environment.find_serving_replicas() == {ONE}


async def test_a_replica_gets_requests_only_while_its_address_is_listed(
    environment: Environment,
) -> None:
    environment.dns.addresses[NAME] = [ONE, TWO]
    assert await environment.wait_for_members({ONE, TWO})
    replicas = await environment.find_serving_replicas()

    environment.dns.addresses[NAME] = [TWO]
    assert await environment.wait_for_members({TWO})

    assert replicas == {ONE, TWO}
    assert await environment.find_serving_replicas() == {TWO}


async def test_a_running_completion_finishes_on_a_removed_replica(environment: Environment) -> None:
    environment.first_engine.is_held = True
    async with environment.site.open_websocket() as socket:
        stream = CompletionStream(socket)
        frame = {
            "type": "complete",
            "id": environment.site.new_id(),
            "mode": "fim",
            "prefix": "a = ",
        }
        num_before = environment.first_engine.num_completions
        completion = asyncio.create_task(
            request_completion(stream, frame | {"suffix": "\n", "max_tokens": 1})
        )

        async def is_under_way() -> bool:
            return environment.first_engine.num_completions > num_before

        assert await wait_until(is_under_way)
        environment.dns.addresses[NAME] = [TWO]
        assert await environment.wait_for_members({TWO})
        had_finished_at_removal = completion.done()
        environment.first_engine.is_held = False
        _, done = await completion

    assert not had_finished_at_removal
    assert done["meta"]["replica"].startswith(ONE)
    assert done["finish_reason"] != "error"


async def test_a_replica_with_another_block_size_is_rejected_with_the_reason(
    environment: Environment,
) -> None:
    environment.second_engine.block_size = 16
    environment.dns.addresses[NAME] = [ONE, TWO]

    async def is_rejected() -> bool:
        return await environment.read_rejected_replicas() == {TWO: "block_size"}

    assert await wait_until(is_rejected, timeout_s=TIMEOUT_S)
    assert await environment.read_members() == {ONE}
    assert await environment.find_serving_replicas() == {ONE}


async def test_a_failing_resolver_removes_no_replica(environment: Environment) -> None:
    environment.dns.is_broken = True
    num_before = environment.dns.num_queries

    async def was_queried() -> bool:
        return environment.dns.num_queries > num_before

    assert await wait_until(was_queried, timeout_s=TIMEOUT_S)
    assert await environment.find_serving_replicas() == {ONE}
