"""Resolves services to the IP addresses of their ready endpoints, by the Kubernetes API.

Endpoints are listed and then watched, so that changes are known at once. While the API is
unreachable, the last known endpoints stay valid.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import Final, Protocol

import msgspec
import structlog

from inference.pools.discovery.endpoint_slices import (
    EndpointSlice,
    EndpointSliceList,
    WatchEvent,
    find_ready_addresses,
)
from inference.pools.discovery.kubernetes_api import ApiUnavailable, ResourceVersionExpired
from inference.pools.discovery.pool_members import ResolutionFailed

MIN_PAUSE_S: Final = 0.5  # between two watches, in case the API ends each at once
MAX_PAUSE_S: Final = 30.0  # between two watches while the API fails
log = structlog.get_logger(__name__)
_decode_slice = msgspec.json.Decoder(EndpointSlice).decode


class EndpointSliceApi(Protocol):
    async def list_slices(self, name: str) -> EndpointSliceList:
        """List the slices of a service. Raises ApiUnavailable, ResourceVersionExpired."""

    def watch_slices(self, name: str, *, since: str) -> AsyncGenerator[WatchEvent, None]:
        """Yield the changes after the resource version `since`, until the API ends the watch.

        Raises ApiUnavailable, ResourceVersionExpired.
        """


class _Service:
    """The known slices of one service."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.slices: dict[str, EndpointSlice] | None = None  # by name; None: not listed yet
        self.version: str | None = None  # resource version of `slices`; None: list again
        self.notified_addresses: frozenset[str] = frozenset()  # addresses at the last notification

    @property
    def addresses(self) -> frozenset[str]:
        return find_ready_addresses((self.slices or {}).values())

    def set_slices(self, listing: EndpointSliceList) -> None:
        self.slices = {
            endpoint_slice.metadata.name: endpoint_slice for endpoint_slice in listing.items
        }
        self.version = listing.metadata.resource_version

    def apply_event(self, change: WatchEvent) -> None:
        """Apply a change. Raises msgspec.MsgspecError."""
        slice_ = _decode_slice(change.object)
        self.slices = self.slices or {}
        if change.type == "DELETED":
            self.slices.pop(slice_.metadata.name, None)
        elif change.type in ("ADDED", "MODIFIED"):
            self.slices[slice_.metadata.name] = slice_
        self.version = slice_.metadata.resource_version or self.version


class KubernetesResolver:
    """A Resolver of the given services. A name is service[.namespace[.svc...]]."""

    def __init__(
        self, api: EndpointSliceApi, names: Iterable[str], *, min_pause_s: float = MIN_PAUSE_S
    ) -> None:
        self.changed: list[Callable[[], None]] = []  # called when an endpoint joined or left
        self._api = api
        self._services = {name: _Service(name) for name in names}
        self._min_pause_s = min_pause_s

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._services)

    async def resolve(self, name: str) -> frozenset[str]:
        service = self._services[name]
        if service.slices is None:
            try:
                listing = await self._api.list_slices(name)
            except (ApiUnavailable, ResourceVersionExpired) as error:
                raise ResolutionFailed(f"the Kubernetes API: {error}") from error
            if service.slices is None:  # otherwise a watch has started, and its slices are newer
                service.set_slices(listing)
        if not (addresses := service.addresses):
            raise ResolutionFailed("no ready endpoint")
        return addresses

    async def run(self) -> None:
        """Watch all services until cancelled."""
        async with asyncio.TaskGroup() as group:
            for service in self._services.values():
                group.create_task(self._watch_forever(service))

    async def _watch_forever(self, service: _Service) -> None:
        pause_s = self._min_pause_s
        while True:
            try:
                await self._watch_once(service)
                pause_s = self._min_pause_s
            except ResourceVersionExpired:
                service.version = None
            except (ApiUnavailable, msgspec.MsgspecError) as error:
                log.warning("pool.unwatched", name=service.name, error=str(error))
                pause_s = min(2 * pause_s, MAX_PAUSE_S)
            await asyncio.sleep(pause_s)

    async def _watch_once(self, service: _Service) -> None:
        """Watch the service once. If no version is known, list its slices first."""
        if service.version is None:
            service.set_slices(await self._api.list_slices(service.name))
            self._notify_changed(service)
        async with aclosing(
            self._api.watch_slices(service.name, since=service.version or "")
        ) as changes:
            async for change in changes:
                service.apply_event(change)
                self._notify_changed(service)

    def _notify_changed(self, service: _Service) -> None:
        if service.addresses != service.notified_addresses:
            service.notified_addresses = service.addresses
            for call in self.changed:
                call()
