"""Requests of clients before their first completion, and their authentication."""

import json

from tests.fakes.gateway import FakeGateway
from tests.fakes.http_gateway import send_request


async def test_the_api_key_header_is_accepted() -> None:
    key = [(b"api-key", FakeGateway().key_text.encode())]

    accepted = await send_request(
        FakeGateway(), "/completions", {"prompt": "a"}, key=None, headers=key
    )
    rejected = await send_request(
        FakeGateway(), "/completions", {"prompt": "a"}, key=None, headers=[(b"api-key", b"x")]
    )

    assert (accepted.status, rejected.status) == (200, 401)


async def test_models_are_listed_only_with_a_key() -> None:
    listed = await send_request(FakeGateway(), "/v1/models", method="GET")
    rejected = await send_request(FakeGateway(), "/v1/models", method="GET", key=None)

    assert json.loads(listed.body) == {
        "data": [{"id": "demo", "object": "model", "created": 0, "owned_by": "caret"}],
        "object": "list",
    }
    assert rejected.status == 401


async def test_tabby_health_has_the_fields_that_clients_read() -> None:
    for method in ("GET", "POST"):
        server = await send_request(FakeGateway(), "/v1/health", method=method)
        health = json.loads(server.body)

        assert health["model"] == "demo"
        assert "device" in health
        assert isinstance(health["version"], dict)


async def test_tabby_plugins_are_told_to_send_no_telemetry_to_their_vendor() -> None:
    server = await send_request(FakeGateway(), "/v1beta/server_setting", method="GET")

    assert json.loads(server.body) == {"disable_client_side_telemetry": True}


async def test_an_ollama_model_declares_fill_in_the_middle() -> None:
    server = await send_request(FakeGateway(), "/api/show", {"name": "anything"})

    assert ".Suffix" in json.loads(server.body)["template"]


async def test_llama_cpp_health_needs_no_key() -> None:
    server = await send_request(FakeGateway(), "/health", method="GET", key=None)

    assert (server.status, server.body) == (200, b'{"status":"ok"}')


async def test_a_wrong_method_is_rejected_with_the_allowed_ones() -> None:
    for path, method, allowed in (
        ("/infill", "GET", "POST, OPTIONS"),
        ("/v1/models", "POST", "GET, HEAD, OPTIONS"),
        ("/v1/health", "PUT", "GET, POST, HEAD, OPTIONS"),
    ):
        server = await send_request(FakeGateway(), path, method=method)
        assert (server.status, server.headers["allow"]) == (405, allowed)
