"""Delivery by HTTP, with signatures of the specification Standard Webhooks.

Only a 2xx response is a success. Redirects are not followed, and the response's body is not read.
"""

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from standardwebhooks.webhooks import Webhook

from caret.foundation.egress.dns_lookup import resolve
from caret.foundation.egress.egress_policy import Egress
from tenants.compliance.audit_sinks.delivery import (
    ADDRESS_NOT_ALLOWED,
    BAD_CERTIFICATE,
    BAD_STATUS,
    SILENT,
    TIMEOUT_S,
    TLS_FAILED,
    UNKNOWN_HOST,
    UNREACHABLE,
    Destination,
    SinkDeliveryError,
)
from tenants.compliance.audit_sinks.messages import SinkMessage, build_webhook_body

_TIMEOUT: Final = aiohttp.ClientTimeout(total=TIMEOUT_S)


class _Resolver(AbstractResolver):
    """Looks up each host name in a thread of its own.

    With aiohttp's resolver, all sinks would share a few threads. A slow lookup for one sink would
    then delay the others.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=socket_address[0],
                port=socket_address[1],
                family=found_family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for found_family, _, protocol, _, socket_address in await resolve(host, port, family)
        ]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


class WebhookSender:
    """Sends messages to one webhook."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        destination: Destination,
        egress: Egress,
        clock: Callable[[], datetime],
    ) -> None:
        assert destination.secret is not None
        self._session = session
        self._url = destination.address.text
        self._signer = Webhook(destination.secret)
        self._egress = egress
        self._clock = clock

    async def send_message(self, message: SinkMessage) -> None:
        """Sign and send a message. Raises SinkDeliveryError."""
        body = build_webhook_body(message)
        try:
            async with self._session.post(
                self._url,
                data=body.encode(),
                headers=self._build_headers(message, body),
                allow_redirects=False,
            ) as response:
                status = response.status
        except TimeoutError as error:
            raise SinkDeliveryError(SILENT) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SinkDeliveryError(
                ADDRESS_NOT_ALLOWED if self._egress.has_refused else _classify_error(error)
            ) from error
        if not 200 <= status < 300:
            raise SinkDeliveryError(BAD_STATUS % {"status": status})

    def _build_headers(self, message: SinkMessage, body: str) -> dict[str, str]:
        now = self._clock()
        return {
            "Content-Type": "application/json",
            "User-Agent": "Caret",
            "webhook-id": message.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._signer.sign(message.id, now, body),
        }


@asynccontextmanager
async def webhook_sender(
    destination: Destination, clock: Callable[[], datetime]
) -> AsyncIterator[WebhookSender]:
    """Open an HTTP session with at most one connection, which later messages reuse."""
    egress = destination.make_egress()
    connector = aiohttp.TCPConnector(
        socket_factory=egress.open_socket,
        ssl=ssl.create_default_context(),
        resolver=_Resolver(),
        limit=1,
    )
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=_TIMEOUT,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,  # ignore the environment's proxy settings
    ) as session:
        yield WebhookSender(session, destination, egress, clock)


def _classify_error(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return UNKNOWN_HOST
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return BAD_CERTIFICATE
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return TLS_FAILED
    return UNREACHABLE
