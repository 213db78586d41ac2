"""Ollama's chat, model lists and error texts."""

import json
from typing import Any

import pytest

from caret.contracts.policy import Mode
from inference.completion.generation_options import Sampling
from inference.consumers.dialects.ollama_generate import error_body
from inference.errors import UnknownModel
from tests.fakes.gateway import KEY, FakeGateway
from tests.fakes.http_gateway import read_engine_prompt, send_request
from tests.fakes.tenants import make_credential, make_snapshot

UNSUPPORTED = "this model does not support"
CHAT: dict[str, Any] = {
    "model": "demo:latest",
    "messages": [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hello"}],
}


async def test_a_chat_is_streamed_as_lines_by_default() -> None:
    gateway = FakeGateway()

    server = await send_request(gateway, "/api/chat", CHAT)

    *lines, after_lines = server.body.decode().split("\n")
    parsed = [json.loads(line) for line in lines]
    assert after_lines == ""
    assert [line["message"] for line in parsed] == [
        {"content": "b", "role": "assistant"},
        {"content": "c", "role": "assistant"},
        {"content": "", "role": "assistant"},
    ]
    assert [line["done"] for line in parsed] == [False, False, True]
    assert (parsed[-1]["done_reason"], parsed[-1]["eval_count"]) == ("stop", 2)
    assert {line["model"] for line in parsed} == {"demo"}
    assert read_engine_prompt(gateway) == "Be terse.\n\nHello\n\n"


async def test_a_chat_is_one_object_without_streaming() -> None:
    server = await send_request(FakeGateway(), "/api/chat", {**CHAT, "stream": False})

    response = json.loads(server.body)
    assert response["message"] == {"content": "bc", "role": "assistant"}
    assert response["done"]


async def test_the_options_of_a_chat_are_honoured() -> None:
    gateway = FakeGateway()
    options = {"num_predict": 7, "temperature": 0.5, "top_p": 0.9, "seed": 3, "stop": ["x"]}

    await send_request(gateway, "/api/chat", {**CHAT, "options": options})

    (request,) = gateway.engine.requests
    assert (request.max_tokens, request.stop) == (7, ("x",))
    assert request.sampling == Sampling(temperature=0.5, top_p=0.9, seed=3)


@pytest.mark.parametrize("messages", [None, []])
async def test_a_chat_without_messages_reports_that_the_model_is_loaded(
    messages: list[Any] | None,
) -> None:
    """Ollama loads a model after such a request. Models of Caret are always loaded."""
    gateway = FakeGateway()

    server = await send_request(gateway, "/api/chat", {"messages": messages, "stream": False})

    response = json.loads(server.body)
    assert (response["done_reason"], response["message"]["content"]) == ("load", "")
    assert gateway.engine.requests == []


async def test_a_chat_is_recorded_as_a_chat_of_the_quality_tier() -> None:
    gateway = FakeGateway()

    await send_request(gateway, "/api/chat", CHAT)

    (record,) = gateway.journal.completions
    assert (record.mode, record.tier, record.protocol) == ("chat", "quality", "ollama")


async def test_a_key_that_may_not_chat_is_refused() -> None:
    gateway = FakeGateway()
    credential = make_credential(KEY, modes=frozenset([Mode.FIM]))
    gateway.snapshot_store.replace(make_snapshot(credential, version=2))

    server = await send_request(gateway, "/api/chat", CHAT)

    assert server.status == 403
    assert json.loads(server.body) == {"error": "This key may not request the mode chat."}


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        ("/api/chat", b"", 400, "missing request body"),
        ("/api/generate", b"", 400, "missing request body"),
        ("/api/chat", {**CHAT, "tools": [{}]}, 400, f"{UNSUPPORTED} tools"),
        ("/api/chat", {**CHAT, "format": "json"}, 400, f"{UNSUPPORTED} format"),
        ("/api/chat", {**CHAT, "think": True}, 400, f"{UNSUPPORTED} thinking"),
        (
            "/api/chat",
            {"messages": [{"role": "user", "content": "x", "images": ["aGk="]}]},
            400,
            f"{UNSUPPORTED} images",
        ),
        ("/api/generate", {"prompt": "a", "think": "low"}, 400, f"{UNSUPPORTED} thinking"),
        ("/api/embed", {"model": "demo", "input": "a"}, 501, f"{UNSUPPORTED} embeddings"),
        ("/api/embeddings", {"prompt": "a"}, 501, f"{UNSUPPORTED} embeddings"),
    ],
)
async def test_errors_have_ollamas_texts(path: str, body: Any, status: int, text: str) -> None:
    gateway = FakeGateway()

    server = await send_request(gateway, path, body)

    assert (server.status, json.loads(server.body)) == (status, {"error": text})
    assert gateway.engine.requests == []


def test_the_error_for_an_unknown_model_has_ollamas_text_if_it_may_name_the_model() -> None:
    assert error_body(UnknownModel("x", "Gone.")) == b'{"error":"model \'x\' not found"}'
    assert error_body(UnknownModel("", "Gone.")) == b'{"error":"Gone."}'


@pytest.mark.parametrize("field", [{"think": False}, {"format": ""}, {"images": []}, {"tools": []}])
async def test_fields_without_effect_are_accepted(field: dict[str, Any]) -> None:
    server = await send_request(FakeGateway(), "/api/chat", {**CHAT, **field})

    assert server.status == 200


async def test_every_model_is_listed_as_loaded() -> None:
    server = await send_request(FakeGateway(), "/api/ps", method="GET")

    (model,) = json.loads(server.body)["models"]
    assert (model["name"], model["model"]) == ("demo", "demo")
    assert model["context_length"] > 0
