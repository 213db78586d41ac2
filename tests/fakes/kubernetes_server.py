"""The Kubernetes API for EndpointSlices.

It checks the token and serves lists and watches. A watch starts at a resource version, sends one
event per line, and may send bookmarks. It ends with 410 for a version that the server has
forgotten.
"""

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

PATH: Final = "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
NAMESPACE: Final = "caret"
_POLL_S: Final = 0.01


def endpoint(*addresses: str, ready: bool | None = True, uid: str = "") -> dict[str, Any]:
    conditions = {} if ready is None else {"ready": ready, "serving": True, "terminating": False}
    target = {"targetRef": {"kind": "Pod", "name": f"pod-{uid}", "uid": uid}} if uid else {}
    return {"addresses": list(addresses), "conditions": conditions, **target}


@dataclass
class KubernetesServer:
    token: str = "first"
    url: str = ""
    version: int = 100
    oldest: int = 100  # the oldest version from which a watch can continue
    is_broken: bool = False
    # Unless None, the server waits for this event before it sends a list response. It builds the
    # response before the wait, so later changes are not in the list.
    release_event: asyncio.Event | None = None
    max_watch_s: float = 30.0
    bookmarks_every_s: float | None = None  # None: it sends none
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)  # by name
    events: list[tuple[int, dict[str, Any]]] = field(default_factory=list)  # version, event
    requests: list[str] = field(default_factory=list)  # "list" and "watch VERSION", in order
    watches: set[web.StreamResponse] = field(default_factory=set)

    def set_slice(
        self,
        name: str,
        *endpoints: dict[str, Any],
        service: str = "engines",
        family: str = "IPv4",
        namespace: str = NAMESPACE,
    ) -> None:
        """Add or change this slice."""
        kind = "MODIFIED" if name in self.objects else "ADDED"
        self.version += 1
        self.objects[name] = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "resourceVersion": str(self.version),
                "labels": {"kubernetes.io/service-name": service},
                "managedFields": [{"manager": "kube-controller-manager"}],
            },
            "addressType": family,
            "endpoints": list(endpoints),
            "ports": [{"name": "http", "port": 8000, "protocol": "TCP"}],
        }
        self.events.append((self.version, {"type": kind, "object": self.objects[name]}))

    def delete_slice(self, name: str) -> None:
        deleted = self.objects.pop(name)
        self.version += 1
        deleted["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, {"type": "DELETED", "object": deleted}))

    def forget_versions(self) -> None:
        """Forget all earlier versions, so that no watch can continue from them."""
        self.oldest = self.version = self.version + 1
        self.events.clear()

    async def handle_request(self, request: web.Request) -> web.StreamResponse:
        if self.is_broken:
            return self._status(HTTPStatus.INTERNAL_SERVER_ERROR)
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return self._status(HTTPStatus.UNAUTHORIZED)
        service = request.query["labelSelector"].removeprefix("kubernetes.io/service-name=")
        namespace = request.match_info["namespace"]
        if "watch" in request.query:
            return await self._watch(request, namespace, service)
        self.requests.append("list")
        items = [slice_ for slice_ in self.objects.values() if _is_of(slice_, namespace, service)]
        metadata = {"resourceVersion": str(self.version)}
        listing = {"kind": "EndpointSliceList", "metadata": metadata, "items": items}
        if (release_event := self.release_event) is not None:
            await release_event.wait()
        return web.json_response(listing)

    async def _watch(
        self, request: web.Request, namespace: str, service: str
    ) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        self.requests.append(f"watch {since}")
        assert request.query["allowWatchBookmarks"] == "true"
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if since < self.oldest:
            status = {"kind": "Status", "code": 410, "reason": "Expired"}
            await self._write_event(response, {"type": "ERROR", "object": status})
            return response
        self.watches.add(response)
        try:
            async with asyncio.timeout(min(self.max_watch_s, int(request.query["timeoutSeconds"]))):
                await self._stream_events(response, namespace, service, since)
        except (TimeoutError, OSError):
            pass
        finally:
            self.watches.discard(response)
        return response

    async def _stream_events(
        self, response: web.StreamResponse, namespace: str, service: str, since: int
    ) -> None:
        loop, sent_version = asyncio.get_running_loop(), since
        bookmarked_s = loop.time()
        while not self.is_broken:
            events = tuple(self.events)  # a test may add events while these are sent
            for version, event in events:
                if version > sent_version and _is_of(event["object"], namespace, service):
                    await self._write_event(response, event)
            sent_version = max([sent_version, *(version for version, _event in events)])
            if self.bookmarks_every_s and loop.time() - bookmarked_s > self.bookmarks_every_s:
                bookmarked_s = loop.time()
                metadata = {"resourceVersion": str(self.version)}
                bookmark = {"kind": "EndpointSlice", "metadata": metadata}
                await self._write_event(response, {"type": "BOOKMARK", "object": bookmark})
            await asyncio.sleep(_POLL_S)

    async def _write_event(self, response: web.StreamResponse, event: dict[str, Any]) -> None:
        """Send a line in two chunks: a line need not be one chunk."""
        line = json.dumps(event).encode() + b"\n"
        await response.write(line[:20])
        await response.write(line[20:])

    def _status(self, status: int) -> web.Response:
        return web.json_response({"kind": "Status", "code": int(status)}, status=status)


def _is_of(endpoint_slice: dict[str, Any], namespace: str, service: str) -> bool:
    metadata = endpoint_slice["metadata"]
    return bool(
        metadata["namespace"] == namespace
        and metadata["labels"]["kubernetes.io/service-name"] == service
    )


@asynccontextmanager
async def kubernetes_server(
    *, certificate: ssl.SSLContext | None = None
) -> AsyncIterator[KubernetesServer]:
    server = KubernetesServer()
    application = web.Application()
    application.router.add_get(PATH, server.handle_request)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate)
    await site.start()
    scheme = "https" if certificate else "http"
    server.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


@contextmanager
def kubernetes_server_in_thread() -> Iterator[KubernetesServer]:
    """Run the server in its own thread, for tests that block their event loop."""
    servers: list[KubernetesServer] = []
    started, loop, stop_event = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with kubernetes_server() as server:
            servers.append(server)
            started.set()
            await stop_event.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield servers[0]
    finally:
        loop.call_soon_threadsafe(stop_event.set)
        thread.join(10)
        loop.close()
