"""Request heads that the handler rejects, because Django cannot create a request from them."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.web.asgi_handler import Handler

# Parts of the parameters in a header, as RFC 2231 and RFC 2047 extend them, and special characters.
TOKENS = [
    *("charset", "charset*", "charset*0", "charset*0*", "charset*1", "boundary*", "a", "*", "="),
    *("nope''x", "utf-8''%FF", "idna''..", "punycode''%ff", "unicode_escape''\\ud800", "zlib''x"),
    *("''", "'", '"', "\\", ";", ",", " ", "\t", "\x00", "é", "%", "utf-8", "undefined", "rot13"),
    "=?utf-8?q?x?=",
]
content_types = st.builds(
    "{};{}".format,
    st.sampled_from(["text/html", "multipart/form-data", ""]),
    st.lists(st.sampled_from(TOKENS), min_size=1, max_size=8).map("".join),
)


def find_rejection(*headers: tuple[bytes, bytes]) -> tuple[int, str] | None:
    """Return status and body if the handler rejects these headers; None if it creates a request.

    Also check that no cache may store the rejection.
    """
    scope = {"type": "http", "path": "/", "method": "GET", "headers": headers}
    request, response = Handler().create_request(scope, io.BytesIO())
    if response is None:
        assert request is not None
        return None
    assert response["Cache-Control"] == "no-store"
    return response.status_code, b"".join(response).decode()


@pytest.mark.parametrize(
    "content_type",
    [b"text/html; charset*=nope''x", b"text/html;charset*=idna''..", b";charset*0=\0charset"],
)
def test_an_unknown_charset_is_rejected(content_type: bytes) -> None:
    rejection = find_rejection((b"content-type", content_type))

    assert rejection is not None
    status, body = rejection
    assert status == 400
    assert json.loads(body)["code"] == "bad_request"


@given(content_types)
@settings(deadline=None)
def test_any_content_type_is_accepted_or_rejected(content_type: str) -> None:
    rejection = find_rejection((b"content-type", content_type.encode("latin-1")))

    assert rejection is None or rejection[0] == 400


@given(st.sampled_from([b"cookie", b"host", b"accept-language", b"range"]), st.binary(max_size=60))
@settings(deadline=None)
def test_any_other_header_is_accepted(name: bytes, value: bytes) -> None:
    assert find_rejection((name, value)) is None
