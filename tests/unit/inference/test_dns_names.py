"""Addresses of names, resolved by a DNS server on this machine."""

import pytest

from inference.pools.discovery.dns_resolver import DnsResolver
from inference.pools.discovery.pool_members import ResolutionFailed
from tests.fakes.dns_server import dns_server

NAME = "engines.caret.svc.cluster.local"


async def test_all_addresses_of_both_kinds_are_found() -> None:
    async with dns_server() as server:
        server.addresses[NAME] = ["10.0.0.1", "10.0.0.2", "fd00::1"]

        found = await DnsResolver(("127.0.0.1", server.port)).resolve(NAME)

    assert found == {"10.0.0.1", "10.0.0.2", "fd00::1"}


async def test_what_has_changed_is_seen_at_once() -> None:
    async with dns_server() as server:
        names = DnsResolver(("127.0.0.1", server.port))
        server.addresses[NAME] = ["10.0.0.1"]
        before = await names.resolve(NAME)
        server.addresses[NAME] = ["10.0.0.2"]

        assert before == {"10.0.0.1"}
        assert await names.resolve(NAME) == {"10.0.0.2"}


@pytest.mark.parametrize("what", ["no such name", "a name without addresses", "a broken server"])
async def test_what_is_not_known_is_said(what: str) -> None:
    async with dns_server() as server:
        server.is_broken = what == "a broken server"
        if what != "no such name":
            server.addresses[NAME] = []

        with pytest.raises(ResolutionFailed):
            await DnsResolver(("127.0.0.1", server.port)).resolve(NAME)
