"""Headers of responses: request ID, authentication scheme, methods, and cross-origin requests."""

import pytest

from inference.consumers.base import Headers
from tests.fakes.asgi import FakeServer
from tests.fakes.gateway import FakeGateway
from tests.fakes.http_gateway import ORIGIN, send_request


async def test_the_request_id_header_is_the_id_of_the_usage_record() -> None:
    gateway = FakeGateway()

    server = await send_request(gateway, "/v1/completions", {"prompt": "a", "suffix": "z"})

    (completion,) = gateway.journal.completions
    assert server.headers["x-request-id"] == completion.request_id


async def test_every_response_has_its_own_request_id() -> None:
    servers = [
        await send_request(FakeGateway(), "/v1/models", method="GET"),
        await send_request(FakeGateway(), "/v1/models", method="GET", key=None),
        await send_request(FakeGateway(), "/nowhere"),
        await send_request(FakeGateway(), "/v1/completions", {"prompt": "a", "stream": True}),
    ]

    assert len({server.headers["x-request-id"] for server in servers}) == len(servers)


async def test_a_401_names_the_authentication_scheme() -> None:
    missing_key_response = await send_request(FakeGateway(), "/v1/completions", {}, key=None)
    wrong_key_response = await send_request(FakeGateway(), "/api/tags", method="GET", key="cpk_x")

    assert missing_key_response.headers["www-authenticate"] == 'Bearer realm="Caret"'
    assert (
        wrong_key_response.headers["www-authenticate"]
        == 'Bearer realm="Caret", error="invalid_token"'
    )


async def test_head_has_the_headers_of_get() -> None:
    head = await send_request(FakeGateway(), "/v1/models", method="HEAD")
    get = await send_request(FakeGateway(), "/v1/models", method="GET")

    assert head.status == 200
    assert head.headers["content-length"] == get.headers["content-length"]


async def _send_preflight(origin: str, path: str = "/v1/completions") -> FakeServer:
    headers: Headers = [
        (b"origin", origin.encode()),
        (b"access-control-request-method", b"POST"),
        (b"access-control-request-headers", b"authorization, x-stainless-os"),
    ]
    return await send_request(FakeGateway(), path, method="OPTIONS", key=None, headers=headers)


async def test_a_preflight_of_an_allowed_origin_needs_no_key() -> None:
    server = await _send_preflight(ORIGIN)

    assert (server.status, server.body) == (204, b"")
    assert server.headers["access-control-allow-origin"] == ORIGIN
    assert server.headers["access-control-allow-headers"] == "authorization, x-stainless-os"
    assert "access-control-allow-credentials" not in server.headers


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", f"{ORIGIN}.evil.example"])
async def test_other_origins_get_no_cross_origin_headers(origin: str) -> None:
    preflight = await _send_preflight(origin)
    request = await send_request(
        FakeGateway(), "/v1/models", method="GET", headers=[(b"origin", origin.encode())]
    )

    for server in (preflight, request):
        assert not [name for name in server.headers if name.startswith("access-control")]


async def test_an_allowed_origin_can_read_responses_and_errors() -> None:
    headers = [(b"origin", ORIGIN.encode())]
    accepted = await send_request(FakeGateway(), "/v1/models", method="GET", headers=headers)
    rejected = await send_request(
        FakeGateway(), "/v1/models", method="GET", key=None, headers=headers
    )

    assert (accepted.status, rejected.status) == (200, 401)
    for server in (accepted, rejected):
        assert server.headers["access-control-allow-origin"] == ORIGIN
        assert server.headers["vary"] == "Origin"
        assert "X-Request-Id" in server.headers["access-control-expose-headers"]


async def test_a_preflight_of_an_unknown_path_is_not_found() -> None:
    server = await _send_preflight(ORIGIN, "/nowhere")

    assert server.status == 404
