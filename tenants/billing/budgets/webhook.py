"""Webhooks by the Standard Webhooks specification, to addresses that a tenant has named.

A tenant must not reach what only we can reach: https only, no redirects, no proxy, and an address
whose name leads to a private, loopback or link-local place is refused. The name is looked up once
and connected to as it was found. CARET_WEBHOOKS_TO_PRIVATE allows all of it, for installations
whose receivers are in their own network.
"""

import base64
import hashlib
import hmac
import http.client
import json
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from caret.foundation.crypto import derive_key
from caret.foundation.egress import may_connect
from tenants.errors import Invalid

_TIMEOUT_S: Final = 10.0
_TOTAL_S: Final = 20.0  # of a whole exchange
_MAX_URL_CHARS: Final = 500


class NotDelivered(Exception):
    """The text says why, and holds nothing that the receiver has sent."""


@dataclass(frozen=True, slots=True)
class Webhook:
    id: str  # the same at each try
    key: tuple[str, str]  # tenant and budget: by which it is signed
    payload: dict[str, Any]


def secret_of(tenant_id: str, budget_id: str) -> str:
    """What the receiver verifies with, as the specification writes it."""
    return f"whsec_{base64.b64encode(_signing_key(tenant_id, budget_id)).decode()}"


def check_address(url: str) -> None:
    """Raises Invalid. Where its name leads is looked at when it is used."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise Invalid("webhook_url", "This is no address.") from error
    schemes = ("https", "http") if settings.WEBHOOKS_TO_PRIVATE else ("https",)
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in schemes or not parts.hostname or not is_plain:
        raise Invalid("webhook_url", "Write an address that begins with https://.")
    if parts.username or parts.password or len(url) > _MAX_URL_CHARS:
        raise Invalid("webhook_url", f"No password, and {_MAX_URL_CHARS} characters at most.")


def send(url: str, webhook: Webhook, *, now: datetime) -> None:
    """Raises NotDelivered."""
    body = json.dumps(webhook.payload | {"timestamp": now.isoformat()}).encode()
    stamp = str(int(now.timestamp()))
    signed = hmac.digest(
        _signing_key(*webhook.key), f"{webhook.id}.{stamp}.".encode() + body, hashlib.sha256
    )
    headers = {
        "content-type": "application/json",
        "webhook-id": webhook.id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
    status = _post(urlsplit(url), body, headers)
    if not 200 <= status < 300:
        raise NotDelivered(f"The receiver answered {status}.")


def _post(parts: SplitResult, body: bytes, headers: dict[str, str]) -> int:
    """Within _TOTAL_S, whatever the receiver does: a byte now and then is no silence."""
    plain = _reach(parts)
    handle = plain.dup()  # TLS takes the other one away
    deadline = threading.Timer(_TOTAL_S, _hang_up, [handle])
    deadline.start()
    host = parts.hostname or ""
    connection = http.client.HTTPConnection(host, timeout=_TIMEOUT_S)
    try:
        connection.sock = _encrypted(plain, host) if parts.scheme == "https" else plain
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body, headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise NotDelivered(f"The receiver did not answer ({type(error).__name__}).") from error
    finally:
        deadline.cancel()
        handle.close()
        plain.close()
        connection.close()


def _hang_up(handle: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        handle.shutdown(socket.SHUT_RDWR)


def _encrypted(plain: socket.socket, host: str) -> ssl.SSLSocket:
    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


def _reach(parts: SplitResult) -> socket.socket:
    """To the very address that was looked at; the certificate is the name's."""
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    address = _resolve(host, port)
    try:
        return socket.create_connection((address, port), timeout=_TIMEOUT_S)
    except OSError as error:
        raise NotDelivered(f"The receiver is not there ({type(error).__name__}).") from error


def _resolve(host: str, port: int) -> str:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotDelivered("The receiver's name leads nowhere.") from error
    addresses = [str(entry[4][0]) for entry in found]
    if not settings.WEBHOOKS_TO_PRIVATE:
        for address in addresses:
            if not may_connect(address, (), is_encrypted=True):
                raise NotDelivered("The receiver's address is not a public one.")
    return addresses[0]


def _signing_key(tenant_id: str, budget_id: str) -> bytes:
    return derive_key(settings.ROOT_SECRET, f"budget-webhook/{tenant_id}/{budget_id}")
