"""A real gateway that discovers the replicas of its pools as endpoints of a Kubernetes service.

The Kubernetes API and the two engines are fakes.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from inference.pools.discovery.pool_members import ROUND_S
from tenants.fleet.pools.scraping.metric_samples import parse_metrics
from tests.benchmarks.installation import create_home
from tests.fakes.kubernetes_server import KubernetesServer, endpoint, kubernetes_server_in_thread
from tests.fakes.scripted_engine import scripted_engine
from tests.functional.gateway.gateway_stack import (
    Frame,
    Site,
    request_completion,
    start_site,
    wait_until,
)
from tests.stack.ports import free_port

ONE, TWO = "127.0.0.1", "127.0.0.2"  # hosts of the engines; both use the same port
TIMEOUT_S = 60.0  # for rounds of polling, on a busy machine


@dataclass(frozen=True, slots=True)
class Environment:
    site: Site
    api: KubernetesServer

    async def read_members(self) -> set[str]:
        samples = parse_metrics(await self.site.metrics())
        return {
            labels["replica"].partition(":")[0]
            for labels, _ in samples.all_values("caret_pool_replica_info", pool="demo-fast")
        }

    async def wait_for_members(self, *members: str) -> bool:
        async def are_members() -> bool:
            return await self.read_members() == set(members)

        return await wait_until(are_members, timeout_s=TIMEOUT_S)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """A gateway that discovers its replicas. The Kubernetes service has one endpoint: ONE.

    Tests share it, in their order in this file. Only the last one leaves another endpoint.
    """
    account = tmp_path_factory.mktemp("account")
    # The properties that the engines report. All replicas of a pool must report the same.
    identity = {"root": "/models/demo", "block_size": 32}
    with (
        kubernetes_server_in_thread() as api,
        scripted_engine(host=ONE, port=free_port(), **identity) as first_engine,
        scripted_engine(host=TWO, port=int(first_engine.url.rpartition(":")[2]), **identity),
        create_home() as home,
    ):
        (account / "token").write_text(api.token)
        (account / "namespace").write_text("caret")
        home.environment["CARET_KUBERNETES_API"] = api.url
        home.environment["CARET_KUBERNETES_SERVICE_ACCOUNT_DIR"] = str(account)
        api.set_slice("engines-a", endpoint(ONE, uid="one"))
        with start_site(home, first_engine.url) as site:
            # Replace the fixed replicas in the pools file by discovery.
            static_pools = site.home.paths.pools.read_text()
            service = first_engine.url.replace(ONE, "engines")
            discovered_pools = static_pools.replace(
                f'replicas = ["{first_engine.url}"]',
                f'discover = "{service}"\nsource = "kubernetes"',
            )
            assert discovered_pools != static_pools
            site.home.paths.pools.write_text(discovered_pools)
            site.gateway.child.stop()
            site.launch_gateway()
            yield Environment(site, api)


async def test_endpoints_that_are_ready_at_the_start_get_requests(environment: Environment) -> None:
    assert await environment.read_members() == {ONE}
    assert await _find_serving_replica(environment.site) == ONE


async def test_endpoint_changes_are_noticed_before_the_next_poll(environment: Environment) -> None:
    durations_s = []
    for members in ((ONE, TWO), (TWO,), (ONE, TWO), (ONE,)):
        began_s = time.monotonic()
        environment.api.set_slice(
            "engines-a", *(endpoint(address, uid=address) for address in members)
        )
        assert await environment.wait_for_members(*members)
        durations_s.append(time.monotonic() - began_s)

    # All changes but the first come right after the gateway noticed the one before. Polling alone
    # would take a whole round for each of them. On a busy machine, a change may take long, too, but
    # not all of them.
    assert min(durations_s[1:]) < ROUND_S / 2


async def test_an_unreachable_api_removes_no_replica(environment: Environment) -> None:
    environment.api.is_broken = True

    async def is_unwatched() -> bool:
        return not environment.api.watches

    assert await wait_until(is_unwatched, timeout_s=TIMEOUT_S)
    await asyncio.sleep(ROUND_S)
    members_during_outage = await environment.read_members()
    environment.api.set_slice("engines-a", endpoint(TWO, uid="two"))
    environment.api.is_broken = False

    assert members_during_outage == {ONE}
    assert await environment.wait_for_members(TWO)
    assert await _find_serving_replica(environment.site) == TWO


async def _find_serving_replica(site: Site) -> str:
    async with site.stream() as stream:
        frame: Frame = {"mode": "fim", "prefix": "a = ", "suffix": "\n", "max_tokens": 1}
        _, done = await request_completion(
            stream, {"type": "complete", **frame, "id": site.new_id()}
        )
    return str(done["meta"]["replica"]).partition(":")[0]
