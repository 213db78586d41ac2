"""HTTP requests with random mutations, as bytes. The same seed gives the same requests."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

_WEBSOCKET: Final = (
    b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Protocol: caret.v1\r\n\r\n"
)
BASE_REQUESTS: Final[Sequence[bytes]] = (
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/models HTTP/1.0\r\n\r\n",
    b"HEAD /sign-in?next=/keys HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n",
    b"GET /sign-in HTTP/1.1\r\nHost: localhost\r\nCookie: caret-session=abc; caret-csrf=x\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b'Content-Length: 14\r\n\r\n{"prompt":"x"}',
    b"POST /infill HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer cpk_dev_x\r\n"
    b'Transfer-Encoding: chunked\r\n\r\n5;a=b\r\n{"inp\r\n2\r\n"}\r\n0\r\nX: y\r\n\r\n',
    b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\nemail=a@b",
    b"POST /api/v1/keys HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data;"
    b" boundary=b\r\nContent-Length: 6\r\n\r\n--b--\r\n",
    b"GET /scim/v2/Users?filter=userName%20eq%20%22a%22 HTTP/1.1\r\nHost: localhost\r\n"
    b"Authorization: Bearer x\r\nX-Forwarded-For: 192.0.2.1, [::1]:80\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n",
    _WEBSOCKET % b"/v1/stream",
    _WEBSOCKET % b"/live" + b"\x81\x82\x00\x00\x00\x00{}",  # and a masked text frame: {}
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)
# Texts that a mutation inserts into a request.
_TOKENS: Final[Sequence[bytes]] = (
    *(b"\r\n", b"\n", b"\r", b"\0", b"\xff\xfe", b"%00", b"%2e%2e/", b"//", b"?" * 50, b"\t"),
    *(
        b"Content-Length: 5\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 99999999999999999999\r\n",
    ),
    *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity, chunked\r\n"),
    *(
        b"Host: evil.example\r\n",
        b"Host:\r\n",
        b"Connection: close, upgrade\r\n",
        b"Upgrade: h2c\r\n",
    ),
    *(b"X: " + b"y" * 9_000 + b"\r\n", b"X: y\r\n" * 120, b"Expect: 100-continue\r\n"),
    *(b"HTTP/0.9", b"HTTP/1.2", b"HTTP/9.9", b"ffffffffffffffff\r\n", b"-1\r\n", b"0\r\n\r\n"),
    *(b"Authorization: Basic =\r\n", b"Accept-Encoding: gzip;q=1e400\r\n", b"Range: bytes=-1\r\n"),
    *(
        b"Accept-Language: " + b"de," * 200 + b"\r\n",
        b"Cookie: =;;=\r\n",
        b"Sec-WebSocket-Key: x\r\n",
    ),
    *("Cookie: caret-session=\N{SNOWMAN}\r\n".encode(), b"Referer: http://[\r\n"),
)


def mutated_request(draw: random.Random) -> bytes:
    """Return one or two of BASE_REQUESTS with up to eight mutations."""
    data = draw.choice(BASE_REQUESTS)
    if draw.random() < 0.2:
        data += draw.choice(BASE_REQUESTS)
    for _ in range(draw.randint(0, 8)):
        data = draw.choice(_MUTATIONS)(draw, data)
    return data


def cut_at_random(draw: random.Random, data: bytes) -> list[bytes]:
    """Return the data whole (half of the time), or cut at one or four random positions."""
    cuts = sorted(draw.randrange(len(data) + 1) for _ in range(draw.choice((0, 0, 1, 4))))
    edges = [0, *cuts, len(data)]
    return [data[start:end] for start, end in pairwise(edges) if end > start]


def _change_byte(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) or 1)  # earlier mutations may have removed all bytes
    return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]


def _remove(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) or 1)
    return data[:at] + data[at + draw.randint(1, 20) :]


def _repeat(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) or 1)
    part = data[at : at + draw.randint(1, 40)]
    return data[:at] + part * draw.choice((2, 3, 200)) + data[at:]


def _insert(draw: random.Random, data: bytes) -> bytes:
    # In half of the cases at the start of a line, where a header may be.
    line_starts = [at + 2 for at in range(len(data)) if data.startswith(b"\r\n", at)]
    if line_starts and draw.random() < 0.5:
        at = draw.choice(line_starts)
    else:
        at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(_TOKENS) + data[at:]


def _truncate(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


# `_insert` is twice as likely as each of the others.
_MUTATIONS: Final = (_change_byte, _remove, _repeat, _insert, _insert, _truncate)
