"""An HTTP client for untrusted URLs, which tenants choose.

1. It connects only to IP addresses that caret.foundation.egress.egress_policy allows.
2. One deadline covers the whole request. A socket's own timeout restarts with each byte.
3. A response body above the size limit is an error.
4. It follows no redirects, and uses no proxies, cookies or decompression.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar
from urllib.parse import SplitResult, urlsplit

from caret.foundation.egress.egress_policy import AddressInfo, Egress
from caret.foundation.special_addresses import Network

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# Headers that override those of the caller.
_FIXED_HEADERS: Final = {"Accept-Encoding": "identity", "Connection": "close"}
_Result = TypeVar("_Result")


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
    deadline_s = time.monotonic() + limits.total_s
    try:
        url = urlsplit(outbound.url)
        with (
            closing(_connect_to_host(url, networks, deadline_s)) as tcp_socket,
            _shut_down_at(deadline_s, tcp_socket),
        ):
            response = _exchange_messages(outbound, url, tcp_socket, limits)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if time.monotonic() >= deadline_s:
            raise RequestFailed("The request timed out.") from error
        raise RequestFailed(f"The endpoint did not respond ({type(error).__name__}).") from error
    if time.monotonic() >= deadline_s:  # a shutdown at the deadline looks like the response's end
        raise RequestFailed("The request timed out.")
    if len(response.body) > limits.max_bytes:
        raise RequestFailed("The response was too large.")
    return response


def _exchange_messages(
    outbound: OutboundRequest, url: SplitResult, tcp_socket: socket.socket, limits: ResponseLimits
) -> OutboundResponse:
    """Exchange the request and the response over an open connection.

    Raises OSError, HTTPException, ValueError.
    """
    host = url.hostname or ""
    tcp_socket.settimeout(limits.total_s)
    # Without a port, http.client would look for one in the text of an IPv6 address.
    connection = http.client.HTTPConnection(host, url.port or _DEFAULT_PORTS[url.scheme])
    with closing(connection):
        connection.sock = _start_tls(tcp_socket, host) if url.scheme == "https" else tcp_socket
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        own_headers = {"Host": url.netloc.rpartition("@")[2], **_FIXED_HEADERS}
        connection.request(
            outbound.method, target, outbound.body, {**outbound.headers, **own_headers}
        )
        with closing(connection.getresponse()) as response:
            body = response.read(limits.max_bytes + 1)  # one byte more shows an excess
            return OutboundResponse(response.status, dict(response.getheaders()), body)


def _start_tls(tcp_socket: socket.socket, host: str) -> ssl.SSLSocket:
    return ssl.create_default_context().wrap_socket(tcp_socket, server_hostname=host)


def _connect_to_host(
    url: SplitResult, networks: Sequence[Network], deadline_s: float
) -> socket.socket:
    """Connect to the first allowed IP address of the host that accepts the connection.

    Raises RequestFailed, OSError, ValueError.
    """
    if url.scheme not in _DEFAULT_PORTS or not url.hostname:
        raise RequestFailed("The address is not valid.")
    egress = Egress(networks, is_encrypted=url.scheme == "https")
    failure: OSError | None = None
    for info in _resolve_host(url.hostname, url.port or _DEFAULT_PORTS[url.scheme], deadline_s):
        try:
            return _connect_to_address(egress, info, deadline_s)
        except OSError as error:
            failure = error
    if egress.has_refused:
        raise RequestFailed(
            "The address is not public, or the connection is not encrypted."
        ) from failure
    raise failure or OSError("the name has no addresses")


def _connect_to_address(egress: Egress, info: AddressInfo, deadline_s: float) -> socket.socket:
    """Connect within the deadline.

    Raises OSError.
    """
    remaining_s = deadline_s - time.monotonic()
    if remaining_s <= 0:
        raise TimeoutError
    new_socket = egress.open_socket(info)
    *_, address = info
    try:
        new_socket.settimeout(remaining_s)
        new_socket.connect(address)
    except BaseException:
        new_socket.close()
        raise
    return new_socket


def _resolve_host(host: str, port: int, deadline_s: float) -> list[AddressInfo]:
    """Resolve a name before the deadline; the system resolver may take 30 s.

    Raises RequestFailed.
    """
    remaining_s = max(0.0, deadline_s - time.monotonic())
    try:
        return list(
            run_in_thread_with_timeout(
                remaining_s, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            )
        )
    except TimeoutError as error:
        raise RequestFailed("The DNS lookup timed out.") from error
    except (OSError, UnicodeError) as error:
        raise RequestFailed("The host name does not resolve.") from error


@contextmanager
def _shut_down_at(deadline_s: float, tcp_socket: socket.socket) -> Iterator[None]:
    """Shut the socket down if the block has not ended at the deadline.

    The shutdown wakes the thread that waits for the socket. The socket's own timeout does not
    suffice, because it restarts with each byte.
    """
    handle = tcp_socket.dup()  # the original loses its file descriptor if it is wrapped in TLS
    timer = threading.Timer(max(0.0, deadline_s - time.monotonic()), _shut_down, [handle])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # otherwise it could shut down a reused file descriptor
        handle.close()


def _shut_down(handle: socket.socket) -> None:
    with suppress(OSError):  # it is already closed
        handle.shutdown(socket.SHUT_RDWR)


def run_in_thread_with_timeout(seconds: float, work: Callable[[], _Result]) -> _Result:
    """Run `work` in a new thread, and wait at most `seconds` for its result.

    After a timeout, the work continues in its thread, and its result is lost. So use this only for
    work that ends by itself and has no side effects. Raises TimeoutError, and all errors of `work`.
    """
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  # raised again in the caller
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result(timeout=seconds)
