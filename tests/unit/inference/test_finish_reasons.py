"""Every HTTP protocol reports a completion's finish reason, even if the completion has no text."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from caret.contracts.usage import FinishReason
from inference.consumers.http.finish_reasons import (
    llama_stop_type,
    mistral_finish_reason,
    ollama_done_reason,
    openai_finish_reason,
)
from inference.errors import CompletionDropped
from tests.fakes.asgi import FakeServer
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import FakeGateway
from tests.fakes.http_gateway import send_request
from tests.fakes.requests import make_trace

_DOCUMENT: Final = Path(__file__).parents[3] / "platform" / "docs" / "clients.md"
# Without ERROR: errors have a separate response.
_REASONS: Final = sorted(set(FinishReason) - {FinishReason.ERROR})
_REASONS_WITHOUT_TEXT: Final = sorted({*_REASONS} - {FinishReason.STOP, FinishReason.LENGTH})
_MESSAGES: Final = [{"role": "user", "content": "a"}]
# By protocol: the path and the body of a request.
_BODIES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "openai": ("/v1/completions", {"prompt": "a"}),
    "tabby": ("/v1/completions", {"segments": {"prefix": "a"}}),
    "chat": ("/v1/chat/completions", {"messages": _MESSAGES}),
    "mistral": ("/v1/fim/completions", {"prompt": "a"}),
    "infill": ("/infill", {"input_prefix": "a"}),
    "ollama": ("/api/generate", {"prompt": "a"}),
}
_STREAMED: Final = [name for name in _BODIES if name != "tabby"]
# The protocol's own value for finish reasons that it does not define.
_SUBSTITUTES: Final = {
    "openai": "content_filter",
    "chat": "content_filter",
    "mistral": "error",
    "infill": "none",
}
# The chunks of an AWS access key, which the filter withholds only at the end.
_SECRET_CHUNKS: Final = ("'''AKIA", "IOSFODNN7EXAMPLF", "'\n")


async def _respond_dropped(
    protocol: str, finish_reason: FinishReason, *, is_streamed: bool
) -> FakeServer:
    """Return the response to a completion that ends with `finish_reason` without text."""
    gateway = FakeGateway(engine=FakeEngine(error_at_start=CompletionDropped(finish_reason)))
    return await _respond(gateway, protocol, is_streamed=is_streamed)


async def _respond(gateway: FakeGateway, protocol: str, *, is_streamed: bool) -> FakeServer:
    path, body = _BODIES[protocol]
    return await send_request(gateway, path, {**body, "stream": is_streamed})


def _last_event(server: FakeServer) -> Any:
    lines = [line for line in server.body.decode().split("\n") if "{" in line]
    return json.loads(lines[-1].removeprefix("data: "))


def _finish_reason_of(event: Any) -> str:
    """Return the finish reason in the protocol's own field."""
    if "choices" in event:
        return str(event["choices"][0]["finish_reason"])
    return str(event.get("stop_type", event.get("done_reason")))


@pytest.mark.parametrize("finish_reason", _REASONS_WITHOUT_TEXT)
@pytest.mark.parametrize("protocol", _BODIES)
async def test_an_empty_response_has_its_finish_reason_in_a_header(
    protocol: str, finish_reason: FinishReason
) -> None:
    server = await _respond_dropped(protocol, finish_reason, is_streamed=False)

    assert (server.status, server.headers["x-caret-finish-reason"]) == (200, finish_reason.value)


@pytest.mark.parametrize("finish_reason", _REASONS_WITHOUT_TEXT)
@pytest.mark.parametrize("protocol", _STREAMED)
async def test_an_empty_stream_has_its_finish_reason_in_a_header(
    protocol: str, finish_reason: FinishReason
) -> None:
    server = await _respond_dropped(protocol, finish_reason, is_streamed=True)

    assert (server.status, server.headers["x-caret-finish-reason"]) == (200, finish_reason.value)


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("finish_reason", _REASONS_WITHOUT_TEXT)
@pytest.mark.parametrize("protocol", _STREAMED)
async def test_an_empty_response_is_distinguishable_from_an_empty_completion(
    protocol: str, finish_reason: FinishReason, is_streamed: bool
) -> None:
    event = _last_event(await _respond_dropped(protocol, finish_reason, is_streamed=is_streamed))

    assert _finish_reason_of(event) == _SUBSTITUTES.get(protocol, finish_reason.value)
    # Ollama's own field has Caret's finish reasons, so its events need no additional field.
    assert event.get("caret_finish_reason", event.get("done_reason")) == finish_reason.value


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("protocol", _STREAMED)
async def test_an_ordinary_response_has_no_additional_fields(
    protocol: str, is_streamed: bool
) -> None:
    server = await _respond(FakeGateway(), protocol, is_streamed=is_streamed)

    event = _last_event(server)
    assert _finish_reason_of(event) in ("stop", "eos")
    assert "caret_finish_reason" not in event
    assert server.headers.get("x-caret-finish-reason") == (None if is_streamed else "stop")


async def test_the_last_event_has_the_finish_reason_of_a_stream_withheld_at_its_end() -> None:
    engine_chunks = chunks_of(*_SECRET_CHUNKS)

    server = await _respond(
        FakeGateway(engine=FakeEngine(engine_chunks)), "mistral", is_streamed=True
    )

    event = _last_event(server)
    assert "x-caret-finish-reason" not in server.headers
    assert (_finish_reason_of(event), event["caret_finish_reason"]) == ("error", "filtered")


async def test_a_complete_response_contains_no_withheld_text() -> None:
    engine_chunks = chunks_of(*_SECRET_CHUNKS)

    server = await _respond(
        FakeGateway(engine=FakeEngine(engine_chunks)), "mistral", is_streamed=False
    )

    assert server.headers["x-caret-finish-reason"] == "filtered"
    assert _last_event(server)["choices"][0]["message"]["content"] == ""


@pytest.mark.parametrize("finish_reason", _REASONS)
async def test_openais_client_types_accept_every_response(finish_reason: FinishReason) -> None:
    complete = await _respond_dropped("openai", finish_reason, is_streamed=False)
    streamed = await _respond_dropped("openai", finish_reason, is_streamed=True)
    chat = await _respond_dropped("chat", finish_reason, is_streamed=False)
    streamed_chat = await _respond_dropped("chat", finish_reason, is_streamed=True)

    Completion.model_validate_json(complete.body)
    Completion.model_validate(_last_event(streamed))
    ChatCompletion.model_validate_json(chat.body)
    ChatCompletionChunk.model_validate(_last_event(streamed_chat))


@pytest.mark.parametrize("body", [{"n_predict": 0}, {"n_predict": 0, "stream": True}])
async def test_a_warm_up_has_no_finish_reason(body: dict[str, Any]) -> None:
    server = await send_request(FakeGateway(), "/infill", {"input_prefix": "a", **body})

    assert "x-caret-finish-reason" not in server.headers
    assert _finish_reason_of(_last_event(server)) == "eos"


def test_the_documented_table_matches_the_code() -> None:
    lines = _DOCUMENT.read_text(encoding="utf-8").split("\n")
    start = next(
        index for index, line in enumerate(lines) if line.startswith("| reason for the end |")
    )
    # The rows follow the header and a line of dashes. Their first cells explain the reasons.
    rows = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")][1:]
        for line in lines[start + 2 : start + 2 + len(_REASONS)]
    ]

    assert sorted(rows) == [_table_row(finish_reason) for finish_reason in _REASONS]


def _table_row(finish_reason: FinishReason) -> list[str]:
    trace = make_trace()
    trace.finish(finish_reason)
    return [
        finish_reason.value,
        openai_finish_reason(trace),
        mistral_finish_reason(trace),
        llama_stop_type(trace),
        ollama_done_reason(trace),
    ]
