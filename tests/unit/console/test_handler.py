"""Request heads that the handler rejects itself, because no request object can be made of them."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.asgi_handler import Handler

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


def answer_to(*headers: tuple[bytes, bytes]) -> tuple[int, str] | None:
    """Return status and body of an immediate response that must not be stored.

    Returns None if a request was made.
    """
    scope = {"type": "http", "path": "/", "method": "GET", "headers": headers}
    request, refusal = Handler().create_request(scope, io.BytesIO())
    if refusal is None:
        assert request is not None
        return None
    assert refusal["Cache-Control"] == "no-store"
    return refusal.status_code, b"".join(refusal).decode()


@pytest.mark.parametrize(
    "content_type",
    [b"text/html; charset*=nope''x", b"text/html;charset*=idna''..", b";charset*0=\0charset"],
)
def test_a_charset_that_cannot_be_read_is_refused(content_type: bytes) -> None:
    answer = answer_to((b"content-type", content_type))

    assert answer is not None
    assert answer[0] == 400
    assert json.loads(answer[1])["code"] == "bad_request"


@given(content_types)
@settings(deadline=None)
def test_whatever_a_content_type_says_is_read_or_refused(content_type: str) -> None:
    answer = answer_to((b"content-type", content_type.encode("latin-1")))

    assert answer is None or answer[0] == 400


@given(st.sampled_from([b"cookie", b"host", b"accept-language", b"range"]), st.binary(max_size=60))
@settings(deadline=None)
def test_whatever_another_header_says_is_read(name: bytes, value: bytes) -> None:
    assert answer_to((name, value)) is None
