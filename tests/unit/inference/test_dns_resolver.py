"""The resolver of replicas' host names, with a DNS server on this machine."""

import pytest

from inference.pools.discovery.dns_resolver import DnsResolver
from inference.pools.discovery.pool_members import ResolutionFailed
from tests.fakes.dns_server import dns_server

NAME = "engines.caret.svc.cluster.local"


async def test_ipv4_and_ipv6_addresses_are_resolved() -> None:
    async with dns_server() as server:
        server.addresses[NAME] = ["10.0.0.1", "10.0.0.2", "fd00::1"]

        addresses = await DnsResolver(("127.0.0.1", server.port)).resolve(NAME)

    assert addresses == {"10.0.0.1", "10.0.0.2", "fd00::1"}


async def test_a_change_of_addresses_is_seen_at_the_next_resolution() -> None:
    async with dns_server() as server:
        resolver = DnsResolver(("127.0.0.1", server.port))
        server.addresses[NAME] = ["10.0.0.1"]
        assert await resolver.resolve(NAME) == {"10.0.0.1"}

        server.addresses[NAME] = ["10.0.0.2"]

        assert await resolver.resolve(NAME) == {"10.0.0.2"}


@pytest.mark.parametrize("failure", ["no such name", "a name without addresses", "a broken server"])
async def test_a_failed_resolution_raises_an_error(failure: str) -> None:
    async with dns_server() as server:
        server.is_broken = failure == "a broken server"
        if failure != "no such name":
            server.addresses[NAME] = []

        with pytest.raises(ResolutionFailed):
            await DnsResolver(("127.0.0.1", server.port)).resolve(NAME)
