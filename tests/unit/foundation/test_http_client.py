"""The HTTP client for URLs that tenants choose, whose servers may be hostile.

Time and size are limited, redirects are not followed, and internal addresses are not contacted.
"""

import socket
import threading
import time
from collections.abc import Iterable, Iterator
from ipaddress import ip_network

import pytest

from caret.foundation.egress.http_client import (
    OutboundRequest,
    OutboundResponse,
    RequestFailed,
    ResponseLimits,
    run_in_thread_with_timeout,
    send_request,
)
from tests.fakes.raw_server import raw_server

LOOPBACK = [ip_network("127.0.0.0/8")]
LIMITS = ResponseLimits(total_s=0.4, max_bytes=1_000)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"


def send_get(url: str, **headers: str) -> OutboundResponse:
    """Send a GET request, which may go to a server on this machine."""
    return send_request(OutboundRequest("GET", url, headers), LOOPBACK, LIMITS)


def send_get_to_server(*chunks: bytes) -> OutboundResponse:
    """Send a GET request to a server that responds with these chunks."""
    with raw_server(lambda: chunks) as server:
        return send_get(f"{server.url}/hook?a=b")


def drip(head: bytes) -> Iterator[bytes]:
    """Yield the head at once, and then one byte every 20 ms, without end."""
    yield head
    while True:
        time.sleep(0.02)
        yield b"x"


def test_a_response_is_read() -> None:
    response = send_get_to_server(HEAD, b"good")

    assert (response.status, response.body) == (200, b"good")


def test_the_request_names_the_host_and_accepts_no_compression() -> None:
    with raw_server(lambda: [HEAD, b"good"]) as server:
        send_get(f"{server.url}/hook?a=b", **{"Accept-Encoding": "gzip", "x-mine": "yes"})

    head = server.requests[0].decode()
    assert head.startswith("GET /hook?a=b HTTP/1.1\r\n")
    assert f"Host: {server.url.removeprefix('http://')}\r\n" in head
    assert "gzip" not in head
    assert "x-mine: yes" in head


def test_an_ipv6_address_with_letters_or_dots_is_contacted() -> None:
    """Python's HTTP client takes the last part of such an address for a port."""
    with raw_server(lambda: [HEAD, b"good"]) as server:
        url = server.url.replace("127.0.0.1", "[::ffff:127.0.0.1]")

        assert send_get(url).body == b"good"

    assert f"Host: {url.removeprefix('http://')}\r\n" in server.requests[0].decode()


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", id="body"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", id="endless body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nx: ", id="header"),
        pytest.param(b"HT", id="status line"),
    ],
)
def test_a_response_that_arrives_byte_by_byte_times_out(head: bytes) -> None:
    with (
        raw_server(lambda: drip(head)) as server,
        pytest.raises(RequestFailed, match="timed out"),
    ):
        send_get(server.url)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_silent_server_times_out(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        with pytest.raises(RequestFailed, match="timed out"):
            send_get(f"{scheme}://127.0.0.1:{port}/")


def test_an_endless_response_is_rejected() -> None:
    def endless() -> Iterable[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        while True:
            yield b"x" * 65_536

    limits = ResponseLimits(total_s=60.0, max_bytes=1_000)
    with raw_server(endless) as server, pytest.raises(RequestFailed, match="too large"):
        send_request(OutboundRequest("GET", server.url, {}), LOOPBACK, limits)


def test_a_redirect_is_not_followed() -> None:
    with raw_server(list) as target:  # `list` returns no chunks
        redirect = f"HTTP/1.1 302 Found\r\nLocation: {target.url}\r\n\r\n".encode()

        response = send_get_to_server(redirect)

        assert (response.status, target.requests) == (302, [])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_internal_addresses_are_not_contacted(host: str) -> None:
    with raw_server(lambda: [HEAD, b"good"]) as server:
        url = server.url.replace("127.0.0.1", host)

        with pytest.raises(RequestFailed, match="not public"):
            send_request(OutboundRequest("GET", url, {}), [], LIMITS)

    assert server.requests == []


@pytest.mark.parametrize("url", ["ftp://x.example/", "http:///x", "http://x:99999/", "x"])
def test_an_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(RequestFailed, match=r"is not valid|ValueError"):
        send_get(url)


def test_an_unresolvable_name_is_rejected() -> None:
    with pytest.raises(RequestFailed, match=r"does not resolve|timed out"):
        send_get("http://does-not-exist.invalid/")


def test_a_response_that_is_not_http_is_rejected() -> None:
    with pytest.raises(RequestFailed, match="did not respond"):
        send_get_to_server(b"SSH-2.0-OpenSSH\r\n")


# --- work in a thread


def test_the_result_of_the_thread_is_returned() -> None:
    assert run_in_thread_with_timeout(5.0, lambda: 7) == 7


def test_an_exception_of_the_thread_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_in_thread_with_timeout(5.0, lambda: 1 // 0)


def test_work_that_takes_too_long_is_abandoned() -> None:
    may_end, started_s = threading.Event(), time.monotonic()

    with pytest.raises(TimeoutError):
        run_in_thread_with_timeout(0.05, lambda: may_end.wait(10.0))

    assert time.monotonic() - started_s < 5  # less than the 10 s of the work
    may_end.set()
