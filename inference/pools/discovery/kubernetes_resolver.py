"""Addresses of a service's ready endpoints, from the Kubernetes API: listed, then watched, so that
who joins or leaves is known at once.

What was heard last holds while the API does not answer.
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
    ready_addresses,
)
from inference.pools.discovery.kubernetes_api import ApiUnavailable, ResourceVersionExpired
from inference.pools.discovery.pool_members import ResolutionFailed

MIN_PAUSE_S: Final = 0.5  # between two watches: an API that ends each at once is not overrun
MAX_PAUSE_S: Final = 30.0
log = structlog.get_logger(__name__)
_decode_slice = msgspec.json.Decoder(EndpointSlice).decode


class EndpointSliceApi(Protocol):
    async def list_slices(self, name: str) -> EndpointSliceList:
        """Raises NotAnswered, Gone."""

    def watch_slices(self, name: str, *, since: str) -> AsyncGenerator[WatchEvent, None]:
        """Ends when the API ends it. Raises NotAnswered, Gone."""


class _Service:
    """What is known of one."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.slices: dict[str, EndpointSlice] | None = None  # by name; None: never heard of
        self.version: str | None = None  # that `slices` are of; None: to be listed
        self.announced: frozenset[str] = frozenset()  # addresses, to who wants to hear of changes

    @property
    def addresses(self) -> frozenset[str]:
        return ready_addresses((self.slices or {}).values())

    def set_slices(self, listing: EndpointSliceList) -> None:
        self.slices = {each.metadata.name: each for each in listing.items}
        self.version = listing.metadata.resource_version

    def apply_event(self, change: WatchEvent) -> None:
        """Raises msgspec.MsgspecError."""
        told = _decode_slice(change.object)
        self.slices = self.slices or {}
        if change.type == "DELETED":
            self.slices.pop(told.metadata.name, None)
        elif change.type in ("ADDED", "MODIFIED"):
            self.slices[told.metadata.name] = told
        self.version = told.metadata.resource_version or self.version


class KubernetesResolver:
    """A Resolver of these services, as `ServiceAccount.slices_request` reads their names."""

    def __init__(
        self, api: EndpointSliceApi, names: Iterable[str], *, min_pause_s: float = MIN_PAUSE_S
    ) -> None:
        self.changed: list[Callable[[], None]] = []  # called when somebody has joined or left
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
            if service.slices is None:  # else a watch has begun meanwhile, and knows better
                service.set_slices(listing)
        if not (found := service.addresses):
            raise ResolutionFailed("no ready endpoint")
        return found

    async def run(self) -> None:
        """Until it is cancelled."""
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
        """One watch, after a list where there is none to go on from."""
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
        if service.addresses != service.announced:
            service.announced = service.addresses
            for call in self.changed:
                call()
