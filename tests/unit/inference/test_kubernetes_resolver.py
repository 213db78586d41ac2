"""Addresses of a service's endpoints, listed and watched in a fake Kubernetes API."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from inference.pools.discovery import kubernetes_api
from inference.pools.discovery.kubernetes_api import KubernetesApi, ServiceAccount
from inference.pools.discovery.kubernetes_resolver import KubernetesResolver
from inference.pools.discovery.pool_members import ResolutionFailed
from tests.fakes.certificate import certificate_for_loopback
from tests.fakes.kubernetes_server import KubernetesServer, endpoint, kubernetes_server
from tests.fakes.polling import wait_until

PAUSE_S = 0.02
NAME = "engines.caret.svc"


def _account(server: KubernetesServer, folder: Path) -> ServiceAccount:
    (folder / "token").write_text(f"{server.token}\n")
    (folder / "namespace").write_text("caret")
    return ServiceAccount(server.url, folder)


class WatchedService:
    """A service, its addresses as the resolver knows them, and their changes."""

    def __init__(self, server: KubernetesServer, resolver: KubernetesResolver, name: str) -> None:
        self.server = server
        self.resolver = resolver
        self.name = name
        self.num_changes = 0
        self._has_changed = asyncio.Event()
        resolver.changed.append(self._on_changed)

    def _on_changed(self) -> None:
        self.num_changes += 1
        self._has_changed.set()

    async def addresses(self) -> set[str]:
        with suppress(ResolutionFailed):
            return set(await self.resolver.resolve(self.name))
        return set()

    async def wait_for_addresses(self, *addresses: str) -> None:
        async with asyncio.timeout(5):
            while await self.addresses() != set(addresses):
                await self._has_changed.wait()
                self._has_changed.clear()

    async def wait_for_watch(self) -> None:
        await wait_until(lambda: bool(self.server.watches))


@asynccontextmanager
async def _resolver(
    server: KubernetesServer, folder: Path, *names: str
) -> AsyncIterator[KubernetesResolver]:
    async with aiohttp.ClientSession() as session:
        api = KubernetesApi(session, _account(server, folder))
        yield KubernetesResolver(api, names or (NAME,), min_pause_s=PAUSE_S)


@asynccontextmanager
async def _run_resolver(
    server: KubernetesServer, folder: Path, name: str = NAME
) -> AsyncIterator[WatchedService]:
    async with _resolver(server, folder, name) as resolver:
        running = asyncio.create_task(resolver.run())
        try:
            yield WatchedService(server, resolver, name)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.fixture
async def server() -> AsyncIterator[KubernetesServer]:
    async with kubernetes_server() as api:
        api.set_slice("engines-a", endpoint("10.0.0.1", uid="one"))
        yield api


async def test_ready_endpoints_are_resolved_before_any_watch(
    server: KubernetesServer, tmp_path: Path
) -> None:
    server.set_slice("engines-b", endpoint("10.0.0.2"), endpoint("10.0.0.3", ready=False))
    server.set_slice("engines-c", endpoint("10.0.0.4", ready=None))

    async with _resolver(server, tmp_path) as resolver:
        addresses = await resolver.resolve(NAME)

    assert addresses == {"10.0.0.1", "10.0.0.2", "10.0.0.4"}
    assert server.requests == ["list"]


async def test_changes_of_endpoints_arrive_without_another_list(
    server: KubernetesServer, tmp_path: Path
) -> None:
    async with _run_resolver(server, tmp_path) as watched_service:
        await watched_service.wait_for_watch()
        server.set_slice("engines-b", endpoint("10.0.0.2"))
        await watched_service.wait_for_addresses("10.0.0.1", "10.0.0.2")
        server.set_slice("engines-b", endpoint("10.0.0.2", ready=False))
        await watched_service.wait_for_addresses("10.0.0.1")
        server.set_slice("engines-b", endpoint("10.0.0.5"))
        server.delete_slice("engines-a")
        await watched_service.wait_for_addresses("10.0.0.5")

    assert server.requests.count("list") == 1
    assert watched_service.num_changes >= 3


async def test_a_pod_with_addresses_of_both_families_is_one_replica(
    server: KubernetesServer, tmp_path: Path
) -> None:
    # The pod "one" also has the address 10.0.0.1 (see the fixture `server`).
    server.set_slice("engines-six", endpoint("fd00::1", uid="one"), family="IPv6")
    server.set_slice("engines-only-six", endpoint("fd00::2", uid="two"), family="IPv6")
    server.set_slice("engines-name", endpoint("engine.example.com"), family="FQDN")

    async with _resolver(server, tmp_path) as resolver:
        assert await resolver.resolve(NAME) == {"10.0.0.1", "fd00::2"}


async def test_only_the_named_services_are_requested(
    server: KubernetesServer, tmp_path: Path
) -> None:
    server.set_slice("others", endpoint("10.9.0.1"), service="others")
    server.set_slice("elsewhere", endpoint("10.9.0.2"), namespace="elsewhere")

    async with _resolver(server, tmp_path, "engines", "engines.elsewhere") as resolver:
        # A name without a namespace means the service account's own namespace.
        assert await resolver.resolve("engines") == {"10.0.0.1"}
        assert await resolver.resolve("engines.elsewhere") == {"10.9.0.2"}


async def test_endpoints_are_listed_again_if_the_version_has_expired(
    server: KubernetesServer, tmp_path: Path
) -> None:
    server.max_watch_s = 0.05
    async with _run_resolver(server, tmp_path) as watched_service:
        await watched_service.wait_for_watch()
        server.objects.clear()
        server.set_slice("engines-z", endpoint("10.0.0.9"))
        server.forget_versions()

        await watched_service.wait_for_addresses("10.0.0.9")

    assert server.requests.count("list") == 2


async def test_bookmarks_keep_a_quiet_watch_from_expiring(
    server: KubernetesServer, tmp_path: Path
) -> None:
    server.max_watch_s, server.bookmarks_every_s = 0.2, 0.05
    async with _run_resolver(server, tmp_path) as watched_service:
        await watched_service.wait_for_watch()
        server.set_slice("others", endpoint("10.9.0.1"), service="others")
        later_version = server.version
        await wait_until(lambda: f"watch {later_version}" in server.requests)

    assert server.requests.count("list") == 1


async def test_an_outage_removes_no_address_and_missed_changes_follow(
    server: KubernetesServer, tmp_path: Path
) -> None:
    async with _run_resolver(server, tmp_path) as watched_service:
        await watched_service.wait_for_watch()
        server.is_broken = True
        await wait_until(lambda: not server.watches)
        await asyncio.sleep(5 * PAUSE_S)
        addresses_in_outage = await watched_service.addresses()
        server.set_slice("engines-b", endpoint("10.0.0.2"))
        server.is_broken = False

        await watched_service.wait_for_addresses("10.0.0.1", "10.0.0.2")

    assert addresses_in_outage == {"10.0.0.1"}
    assert server.requests.count("list") == 1


async def test_a_hanging_list_does_not_block_the_watch(
    server: KubernetesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_api, "_LIST_S", 0.05)  # a shorter time limit
    server.release_event = asyncio.Event()  # responses to lists wait for this event
    async with _run_resolver(server, tmp_path) as watched_service:
        await wait_until(lambda: server.requests.count("list") > 1)
        server.release_event = None

        await watched_service.wait_for_watch()


async def test_a_late_list_does_not_override_newer_changes(
    server: KubernetesServer, tmp_path: Path
) -> None:
    server.release_event = may_respond = asyncio.Event()  # the response to the first list waits
    async with _resolver(server, tmp_path) as resolver:
        task = asyncio.create_task(resolver.resolve(NAME))
        await wait_until(lambda: server.requests == ["list"])
        server.release_event = None
        server.set_slice("engines-b", endpoint("10.0.0.2"))
        running = asyncio.create_task(resolver.run())
        await wait_until(lambda: bool(server.watches))

        may_respond.set()
        addresses = await task
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert addresses == {"10.0.0.1", "10.0.0.2"}


async def test_a_renewed_token_is_read_again(server: KubernetesServer, tmp_path: Path) -> None:
    server.max_watch_s = 0.05
    async with _run_resolver(server, tmp_path) as watched_service:
        await watched_service.wait_for_watch()
        server.token = "second"
        (tmp_path / "token").write_text("second")
        server.set_slice("engines-b", endpoint("10.0.0.2"))

        await watched_service.wait_for_addresses("10.0.0.1", "10.0.0.2")


def _broken(server: KubernetesServer, _folder: Path) -> None:
    server.is_broken = True


def _forbidden(server: KubernetesServer, _folder: Path) -> None:
    server.token = "another"


def _empty(server: KubernetesServer, _folder: Path) -> None:
    server.objects.clear()


def _no_ready_endpoints(server: KubernetesServer, _folder: Path) -> None:
    server.set_slice("engines-a", endpoint("10.0.0.1", ready=False))


def _without_token(_server: KubernetesServer, folder: Path) -> None:
    (folder / "token").unlink()


@pytest.mark.parametrize(
    "cause_failure", [_broken, _forbidden, _empty, _no_ready_endpoints, _without_token]
)
async def test_a_failed_resolution_raises(
    server: KubernetesServer,
    tmp_path: Path,
    cause_failure: Callable[[KubernetesServer, Path], None],
) -> None:
    async with _resolver(server, tmp_path) as resolver:
        cause_failure(server, tmp_path)

        with pytest.raises(ResolutionFailed):
            await resolver.resolve(NAME)


async def test_an_api_that_ends_watches_at_once_is_requested_at_intervals(
    server: KubernetesServer, tmp_path: Path
) -> None:
    server.max_watch_s = 0.0
    async with _run_resolver(server, tmp_path):
        await asyncio.sleep(20 * PAUSE_S)

    assert len(server.requests) <= 22  # a list, a watch after each pause, and a margin of one


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_an_untrusted_certificate_is_rejected(tmp_path: Path, is_trusted: bool) -> None:
    folders = tmp_path / "api", tmp_path / "another"
    for folder in folders:
        folder.mkdir()
    (context, file), (_, other_file) = (certificate_for_loopback(folder) for folder in folders)
    trusted_file = file if is_trusted else other_file
    (tmp_path / "ca.crt").write_bytes(trusted_file.read_bytes())
    async with kubernetes_server(certificate=context) as server:
        server.set_slice("engines-a", endpoint("10.0.0.1"))
        async with _resolver(server, tmp_path) as resolver:
            addresses = await WatchedService(server, resolver, NAME).addresses()

    assert bool(addresses) is is_trusted
    assert bool(server.requests) is is_trusted
