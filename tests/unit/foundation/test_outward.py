"""A hostile HTTP server cannot do much to a client of ours, and not for long."""

import socket
import time
from collections.abc import Iterable, Iterator
from ipaddress import ip_network

import pytest

from caret.foundation.egress.http_client import (
    OutboundRequest,
    OutboundResponse,
    RequestFailed,
    ResponseLimits,
    send_request,
)
from tests.fakes.raw_server import raw_server

LOOPBACK = [ip_network("127.0.0.0/8")]
BOUNDS = ResponseLimits(total_s=0.4, max_bytes=1_000)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"


def ask(url: str, **headers: str) -> OutboundResponse:
    return send_request(OutboundRequest("GET", url, headers), LOOPBACK, BOUNDS)


def answered(*pieces: bytes) -> OutboundResponse:
    with raw_server(lambda: pieces) as server:
        return ask(f"{server.url}/hook?a=b")


def dripping(head: bytes) -> Iterator[bytes]:
    yield head
    while True:
        time.sleep(0.02)
        yield b"x"


def test_an_answer_is_read() -> None:
    answer = answered(HEAD, b"good")

    assert (answer.status, answer.body) == (200, b"good")


def test_what_is_asked_names_the_host_and_wants_nothing_packed() -> None:
    with raw_server(lambda: [HEAD, b"good"]) as server:
        ask(f"{server.url}/hook?a=b", **{"Accept-Encoding": "gzip", "x-mine": "yes"})

    head = server.asked[0].decode()
    assert head.startswith("GET /hook?a=b HTTP/1.1\r\n")
    assert f"Host: {server.url.removeprefix('http://')}\r\n" in head
    assert "gzip" not in head
    assert "x-mine: yes" in head


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", id="of the body"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", id="of a body without an end"),
        pytest.param(b"HTTP/1.1 200 OK\r\nx: ", id="of a header"),
        pytest.param(b"HT", id="of the status"),
    ],
)
def test_a_byte_now_and_then_is_no_answer(head: bytes) -> None:
    begun = time.monotonic()

    with (
        raw_server(lambda: dripping(head)) as server,
        pytest.raises(RequestFailed, match="timed out"),
    ):
        ask(server.url)

    assert time.monotonic() - begun < 3 * BOUNDS.total_s


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_silence_is_none_either(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        with pytest.raises(RequestFailed, match="timed out"):
            ask(f"{scheme}://127.0.0.1:{port}/")


def test_an_answer_without_end_is_cut_off() -> None:
    def endless() -> Iterable[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        while True:
            yield b"x" * 65_536

    with raw_server(endless) as server, pytest.raises(RequestFailed, match="too large"):
        ask(server.url)


def test_a_redirect_is_an_answer_like_any_other() -> None:
    with raw_server(list) as inner:
        answer = answered(f"HTTP/1.1 302 Found\r\nLocation: {inner.url}\r\n\r\n".encode())

        assert (answer.status, inner.asked) == (302, [])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_what_is_ours_is_not_reached(host: str) -> None:
    with raw_server(lambda: [HEAD, b"good"]) as server:
        url = server.url.replace("127.0.0.1", host)

        with pytest.raises(RequestFailed, match="not public"):
            send_request(OutboundRequest("GET", url, {}), [], BOUNDS)

    assert server.asked == []


@pytest.mark.parametrize("url", ["ftp://x.example/", "http:///x", "http://x:99999/", "x"])
def test_an_address_that_is_none_is_not_asked(url: str) -> None:
    with pytest.raises(RequestFailed):
        ask(url)


def test_a_name_that_is_none_leads_nowhere() -> None:
    with pytest.raises(RequestFailed, match=r"does not resolve|timed out"):
        ask("http://does-not-exist.invalid/")


def test_what_is_no_http_is_no_answer() -> None:
    with pytest.raises(RequestFailed, match="did not respond"):
        answered(b"SSH-2.0-OpenSSH\r\n")
