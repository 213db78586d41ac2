"""Endpoints that return models, health or settings, and their authentication and methods."""

import json

import pytest

from caret.contracts.policy import Mode
from tests.fakes.gateway import KEY, FakeGateway
from tests.fakes.http_gateway import send_request
from tests.fakes.tenants import make_credential, make_snapshot


async def test_a_key_is_accepted_in_the_api_key_header() -> None:
    key = [(b"api-key", FakeGateway().key_text.encode())]

    accepted = await send_request(
        FakeGateway(), "/completions", {"prompt": "a"}, key=None, headers=key
    )
    rejected = await send_request(
        FakeGateway(), "/completions", {"prompt": "a"}, key=None, headers=[(b"api-key", b"x")]
    )

    assert (accepted.status, rejected.status) == (200, 401)


DEMO_MODEL = {
    "id": "demo",
    "capabilities": {
        "completion_chat": True,
        "completion_fim": True,
        "function_calling": False,
        "fine_tuning": False,
        "vision": False,
    },
    "object": "model",
    "created": 0,
    "owned_by": "caret",
    "type": "base",
}


async def test_models_are_listed_only_with_a_key() -> None:
    model_list = await send_request(FakeGateway(), "/v1/models", method="GET")
    rejected = await send_request(FakeGateway(), "/v1/models", method="GET", key=None)

    assert json.loads(model_list.body) == {"data": [DEMO_MODEL], "object": "list"}
    assert rejected.status == 401


@pytest.mark.parametrize("name", ["demo", "caret"])
async def test_a_model_is_described_at_its_name_and_at_the_name_caret(name: str) -> None:
    server = await send_request(FakeGateway(), f"/v1/models/{name}", method="GET")

    assert json.loads(server.body) == DEMO_MODEL


@pytest.mark.parametrize("name", ["other", "demo/x", "", "../models"])
async def test_an_unknown_model_is_not_found(name: str) -> None:
    server = await send_request(FakeGateway(), f"/v1/models/{name}", method="GET")

    assert (server.status, server.error_code) == (404, "model_not_found")


async def test_a_model_is_described_only_with_a_key() -> None:
    server = await send_request(FakeGateway(), "/v1/models/demo", method="GET", key=None)

    assert server.status == 401


async def test_a_model_has_no_chat_capability_for_a_key_that_may_not_chat() -> None:
    gateway = FakeGateway()
    credential = make_credential(KEY, modes=frozenset([Mode.FIM, Mode.BLOCK]))
    gateway.snapshot_store.replace(make_snapshot(credential, version=2))

    server = await send_request(gateway, "/v1/models/demo", method="GET")

    capabilities = json.loads(server.body)["capabilities"]
    assert (capabilities["completion_chat"], capabilities["completion_fim"]) == (False, True)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_tabby_health_has_the_fields_that_clients_read(method: str) -> None:
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


@pytest.mark.parametrize(
    ("path", "method", "allowed"),
    [
        ("/infill", "GET", "POST, OPTIONS"),
        ("/v1/models", "POST", "GET, HEAD, OPTIONS"),
        ("/v1/health", "PUT", "GET, POST, HEAD, OPTIONS"),
    ],
)
async def test_a_response_to_a_wrong_method_names_the_allowed_methods(
    path: str, method: str, allowed: str
) -> None:
    server = await send_request(FakeGateway(), path, method=method)

    assert (server.status, server.headers["allow"]) == (405, allowed)
