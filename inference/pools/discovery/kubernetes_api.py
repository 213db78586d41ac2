"""A client of the Kubernetes API that lists and watches the EndpointSlices of a service.

It uses no client library: the official ones are generated from the whole API, and have tens of
thousands of lines for two requests.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from inference.pools.discovery.endpoint_slices import (
    EndpointSliceList,
    KubernetesStatus,
    WatchEvent,
)

# A watch is renewed after this time. This also detects a connection that broke silently.
WATCH_S: Final = 60
_CONNECT_S: Final = 3.0
_LIST_S: Final = 10.0
_SLACK_S: Final = 10.0  # beyond WATCH_S, until a silent connection counts as broken
_MAX_LIST_BYTES: Final = 32 * 1024 * 1024
# aiohttp reads lines of up to twice this size. The longest line has a slice of 1,000 endpoints of
# about 400 bytes each.
_READ_BUFFER_BYTES: Final = 1024 * 1024
_SERVICE_LABEL: Final = "kubernetes.io/service-name"
_decode_listing = msgspec.json.Decoder(EndpointSliceList).decode
_decode_change = msgspec.json.Decoder(WatchEvent).decode
_decode_status = msgspec.json.Decoder(KubernetesStatus).decode


class ApiUnavailable(Exception):
    """The API is unreachable, rejects the request, or its response is invalid; see the text."""


class ResourceVersionExpired(Exception):
    """The resource version is older than the API's history: list again."""


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The API's address and the credentials, from files that Kubernetes mounts and renews."""

    url: str  # without a trailing slash
    folder: Path  # contains token, ca.crt, namespace

    def make_headers(self) -> dict[str, str]:
        token = (self.folder / "token").read_text().strip()
        return {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    def make_ssl_context(self) -> ssl.SSLContext | bool:
        """Return a context that trusts ca.crt; True (aiohttp's default) if the URL has no TLS."""
        if not self.url.startswith("https:"):
            return True
        return ssl.create_default_context(cafile=self.folder / "ca.crt")

    def build_slices_request(self, name: str) -> tuple[str, dict[str, str]]:
        """Return the URL and the query that select the slices of a service.

        `name` is service[.namespace[.svc...]]. The default is the account's namespace.
        """
        service, _, domain = name.partition(".")
        namespace = domain.partition(".")[0] or (self.folder / "namespace").read_text().strip()
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        return self.url + path, {"labelSelector": f"{_SERVICE_LABEL}={service}"}


class KubernetesApi:
    def __init__(self, session: aiohttp.ClientSession, account: ServiceAccount) -> None:
        self._session = session
        self._account = account

    async def list_slices(self, name: str) -> EndpointSliceList:
        """List the slices of a service. Raises ApiUnavailable, ResourceVersionExpired."""
        try:
            async with asyncio.timeout(_LIST_S), self._request(name, {}) as response:
                body = bytearray()
                async for part in response.content.iter_any():
                    body += part
                    if len(body) > _MAX_LIST_BYTES:
                        raise ApiUnavailable("the list of endpoints is too long")
                return _decode_listing(body)
        except TimeoutError as error:
            raise ApiUnavailable("the list of endpoints took too long") from error

    async def watch_slices(self, name: str, *, since: str) -> AsyncGenerator[WatchEvent, None]:
        """Yield changes after the resource version `since`, until the API ends the watch.

        The API ends it after WATCH_S at the latest. Raises ApiUnavailable, ResourceVersionExpired.
        """
        query = {
            "watch": "1",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
        }
        async with self._request(name, query) as response:
            while line := await response.content.readline():
                change = _decode_change(line)
                if change.type == "ERROR":
                    raise _to_error(_decode_status(change.object).code)
                yield change

    @asynccontextmanager
    async def _request(
        self, name: str, query: dict[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            url, selector = self._account.build_slices_request(name)
            async with self._session.get(
                url,
                params=selector | query,
                headers=self._account.make_headers(),
                ssl=self._account.make_ssl_context(),
                read_bufsize=_READ_BUFFER_BYTES,
                allow_redirects=False,  # the token must not be sent to another server
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=_CONNECT_S, sock_read=WATCH_S + _SLACK_S
                ),
            ) as response:
                if response.status != HTTPStatus.OK:
                    raise _to_error(response.status)
                yield response
        # ValueError: a line without an end, or invalid JSON.
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ApiUnavailable(type(error).__name__) from error


def _to_error(status: int) -> Exception:
    return (
        ResourceVersionExpired()
        if status == HTTPStatus.GONE
        else ApiUnavailable(f"status {status}")
    )
