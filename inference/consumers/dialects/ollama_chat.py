"""`POST /api/chat` in Ollama's format: lines of JSON, streamed by default.

A request without messages asks to load the model. The model is always loaded, so the response comes
at once, without text.
"""

from typing import Any, Final, Literal

import msgspec

from caret.contracts.policy import Mode, Trigger
from inference.completion.incoming_request import ChatMessage, IncomingRequest, UnvalidatedRequest
from inference.completion.request_trace import RequestTrace
from inference.consumers.dialects.ollama_generate import (
    FinalFields,
    Options,
    UnsupportedFields,
    build_final_fields,
    decode_body,
    error_body,
    format_time,
    read_model_name,
    refuse_capability,
)
from inference.consumers.http.completions import Dialect, ParsedRequest
from inference.consumers.http.request_bodies import build_sampling, normalize_stops, read_limit
from inference.consumers.http.responses import NDJSON, make_response_writer
from inference.gateway.receive import MAX_MESSAGES

# Replaces the messages of a request that has none, because `receive` requires at least one.
_PLACEHOLDER_MESSAGES: Final = (ChatMessage("user", ""),)


class OllamaMessage(msgspec.Struct, frozen=True):
    role: Literal["system", "user", "assistant"]
    content: str = ""
    images: list[str] | None = None  # rejected unless empty


class OllamaChatBody(UnsupportedFields, frozen=True):
    model: str | None = None
    messages: list[OllamaMessage] | None = None
    stream: bool | None = None  # None means true
    options: Options | None = None
    tools: list[dict[str, Any]] | None = None  # rejected unless empty


class OllamaChatMessage(msgspec.Struct, frozen=True):
    content: str
    role: str = "assistant"


class OllamaChatChunk(msgspec.Struct, frozen=True):
    model: str
    created_at: str  # ISO 8601, UTC
    message: OllamaChatMessage
    done: bool = False


class OllamaChatFinal(FinalFields, frozen=True, kw_only=True):
    message: OllamaChatMessage


class OllamaChatEncoder:
    def __init__(self, arrival: IncomingRequest) -> None:
        self._created_at = format_time(arrival)

    def encode_delta(self, text: str, trace: RequestTrace) -> OllamaChatChunk:
        return OllamaChatChunk(trace.model_name, self._created_at, OllamaChatMessage(text))

    def encode_end(self, trace: RequestTrace) -> list[OllamaChatFinal]:
        return [self.encode_full("", trace)]

    def encode_full(self, text: str, trace: RequestTrace) -> OllamaChatFinal:
        return OllamaChatFinal(message=OllamaChatMessage(text), **build_final_fields(trace))


_decoder: Final = msgspec.json.Decoder(OllamaChatBody)


def parse_request(body: bytes) -> ParsedRequest:
    """Parse a request. Raises BadRequest."""
    request = decode_body(_decoder, body)
    refuse_capability("tools", request.tools)
    messages = request.messages or []
    refuse_capability("images", any(message.images for message in messages))
    options = request.options or Options()
    limit, is_warm_up = read_limit(options.num_predict)  # a limit of 0 asks for a warm-up
    draft = UnvalidatedRequest(
        mode=Mode.CHAT,
        prefix="",
        # One more than the limit, so that `receive` rejects too many messages.
        messages=tuple(map(_to_message, messages[: MAX_MESSAGES + 1])) or _PLACEHOLDER_MESSAGES,
        max_tokens=limit,
        is_warm_up=is_warm_up or not messages,
        stop=normalize_stops(options.stop),
        trigger=Trigger.MANUAL,
        model=read_model_name(request.model),
        sampling=build_sampling(options.temperature, options.top_p, options.seed),
    )
    framing = None if request.stream is False else NDJSON
    return ParsedRequest(
        protocol="ollama", draft=draft, make_writer=make_response_writer(OllamaChatEncoder, framing)
    )


def _to_message(message: OllamaMessage) -> ChatMessage:
    return ChatMessage(role=message.role, text=message.content)


DIALECT: Final = Dialect(parse_request=parse_request, encode_error=error_body)
