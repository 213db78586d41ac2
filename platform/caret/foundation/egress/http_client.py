"""An HTTP client for untrusted addresses that tenants choose.

where    only where caret.foundation.egress.egress_policy allows it, checked when connecting
time     one deadline for everything, since a byte now and then resets a socket's timeout
size     a limit on the body; a larger one is an error
follows  nothing: no redirect, no proxy, no cookie, no decompression
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urlsplit

from caret.foundation.concurrency.thread_timeout import run_in_thread_with_timeout
from caret.foundation.egress.egress_policy import AddressInfo, Egress
from caret.foundation.special_addresses import Network

_PORTS: Final = {"http": 80, "https": 443}
_OURS: Final = {"Accept-Encoding": "identity", "Connection": "close"}  # override the caller's


class RequestFailed(Exception):
    """The request failed. The text gives the reason and quotes nothing from the response."""


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    total_s: float  # from the name lookup to the last byte
    max_bytes: int  # of the response body


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    method: str
    url: str = field(repr=False)  # its path may be a secret
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class OutboundResponse:
    status: int
    headers: dict[str, str]
    body: bytes = field(repr=False)


def send_request(
    outbound: OutboundRequest, networks: Sequence[Network], limits: ResponseLimits
) -> OutboundResponse:
    """Send a request; block the thread for at most `total_s`.

    Raises RequestFailed.
    """
    deadline = time.monotonic() + limits.total_s
    try:
        url = urlsplit(outbound.url)
        with (
            closing(_connect_to_host(url, networks, deadline)) as plain,
            _hang_up_at(deadline, plain),
        ):
            response = _exchange_messages(outbound, url, plain, limits)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if time.monotonic() >= deadline:
            raise RequestFailed("The request timed out.") from error
        raise RequestFailed(f"The endpoint did not respond ({type(error).__name__}).") from error
    if time.monotonic() >= deadline:  # closing looks like the end of a response
        raise RequestFailed("The request timed out.")
    if len(response.body) > limits.max_bytes:
        raise RequestFailed("The response was too large.")
    return response


def _exchange_messages(
    outbound: OutboundRequest, url: SplitResult, plain: socket.socket, limits: ResponseLimits
) -> OutboundResponse:
    """Exchange the request and the response over an open connection.

    Raises OSError, HTTPException, ValueError.
    """
    host = url.hostname or ""
    plain.settimeout(limits.total_s)
    connection = http.client.HTTPConnection(host)
    with closing(connection):
        connection.sock = _start_tls(plain, host) if url.scheme == "https" else plain
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        own_headers = {"Host": url.netloc.rpartition("@")[2], **_OURS}
        connection.request(
            outbound.method, target, outbound.body, {**outbound.headers, **own_headers}
        )
        with closing(connection.getresponse()) as response:
            body = response.read(limits.max_bytes + 1)
            return OutboundResponse(response.status, dict(response.getheaders()), body)


def _start_tls(plain: socket.socket, host: str) -> ssl.SSLSocket:
    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


def _connect_to_host(
    parts: SplitResult, networks: Sequence[Network], deadline: float
) -> socket.socket:
    """Connect to the address that was checked; the certificate must match the host name.

    Raises RequestFailed, OSError, ValueError.
    """
    if parts.scheme not in _PORTS or not parts.hostname:
        raise RequestFailed("The address is not valid.")
    egress = Egress(networks, is_encrypted=parts.scheme == "https")
    failure: OSError | None = None
    for info in _resolve_host(parts.hostname, parts.port or _PORTS[parts.scheme], deadline):
        try:
            return _connect_to_address(egress, info, deadline)
        except OSError as error:
            failure = error
    if egress.has_refused:
        raise RequestFailed("The address is not public.") from failure
    raise failure or OSError("the name has no addresses")


def _connect_to_address(egress: Egress, info: AddressInfo, deadline: float) -> socket.socket:
    """Connect within the deadline.

    Raises OSError.
    """
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    open_socket_ = egress.open_socket(info)
    try:
        open_socket_.settimeout(left_s)
        open_socket_.connect(info[4])
    except BaseException:
        open_socket_.close()
        raise
    return open_socket_


def _resolve_host(host: str, port: int, deadline: float) -> list[AddressInfo]:
    """Resolve a name within the deadline, as the system resolver may take 30 s.

    Raises RequestFailed.
    """
    left_s = max(0.0, deadline - time.monotonic())
    try:
        return list(
            run_in_thread_with_timeout(
                left_s, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            )
        )
    except TimeoutError as error:
        raise RequestFailed("The DNS lookup timed out.") from error
    except (OSError, UnicodeError) as error:
        raise RequestFailed("The host name does not resolve.") from error


@contextmanager
def _hang_up_at(deadline: float, plain: socket.socket) -> Iterator[None]:
    """Shut the socket down at the deadline, to wake the thread that waits for it.

    A socket's own timeout restarts with each byte.
    """
    handle = plain.dup()  # TLS detaches the original
    timer = threading.Timer(max(0.0, deadline - time.monotonic()), _hang_up, [handle])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # otherwise it could shut down a reused file descriptor
        handle.close()


def _hang_up(handle: socket.socket) -> None:
    with suppress(OSError):  # it is already closed
        handle.shutdown(socket.SHUT_RDWR)
