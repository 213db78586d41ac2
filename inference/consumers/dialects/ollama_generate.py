"""`POST /api/generate` in Ollama's format: lines of JSON, streamed by default.

With `suffix`, the prompt is the text before the cursor. Without `suffix`, the prompt may be a
fill-in-the-middle prompt that the client rendered for some model family. The gateway splits it at
its markers, and renders it again for our model. A prompt without such markers goes to the model
unchanged, except that secrets are removed.

A request without prompt and suffix asks to load the model. The model is always loaded, so the
response comes at once, without text.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from caret.contracts.policy import Trigger
from inference.completion.incoming_request import IncomingRequest
from inference.completion.request_trace import RequestTrace
from inference.consumers.http.completions import Dialect, ParsedRequest
from inference.consumers.http.finish_reasons import ollama_done_reason
from inference.consumers.http.request_bodies import (
    Body,
    Stops,
    build_fim_request,
    decode,
    normalize_stops,
)
from inference.consumers.http.responses import NDJSON, encode, make_response_writer
from inference.errors import BadRequest, CompletionError, UnknownModel


class Options(msgspec.Struct, frozen=True):
    # The most tokens to generate. None or below 0: the mode's default. 0: a warm-up,
    # which is answered without text.
    num_predict: int | None = None
    stop: Stops = None
    # For chats only; other completions ignore the following fields.
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None


class UnsupportedFields(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that are rejected rather than ignored, because clients rely on their effect."""

    format: Any = None
    think: bool | str | None = None
    images: list[str] | None = None


class GenerateBody(UnsupportedFields, frozen=True):
    model: str | None = None
    prompt: str | None = None
    suffix: str | None = None
    stream: bool | None = None  # None means true
    options: Options | None = None


class GenerateChunk(msgspec.Struct, frozen=True):
    model: str
    created_at: str  # ISO 8601, UTC
    response: str
    done: bool = False


class FinalFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of the last line of every response. Durations are in nanoseconds."""

    model: str
    created_at: str  # ISO 8601, UTC
    done: bool = True
    done_reason: str  # `load` for a warm-up, otherwise the finish reason
    total_duration: int
    load_duration: int = 0
    prompt_eval_count: int  # tokens of the prompt
    prompt_eval_duration: int  # from the engine request to its first token
    eval_count: int  # generated tokens
    eval_duration: int  # from the first text to the end


class GenerateFinal(FinalFields, frozen=True, kw_only=True):
    response: str
    context: list[int] = []  # Ollama's token IDs of the conversation; always empty here


class OllamaError(msgspec.Struct, frozen=True):
    error: str


class OllamaResponseEncoder:
    def __init__(self, arrival: IncomingRequest) -> None:
        self._created_at = format_time(arrival)

    def encode_delta(self, text: str, trace: RequestTrace) -> GenerateChunk:
        return GenerateChunk(trace.model_name, self._created_at, text)

    def encode_end(self, trace: RequestTrace) -> list[GenerateFinal]:
        return [self.encode_full("", trace)]

    def encode_full(self, text: str, trace: RequestTrace) -> GenerateFinal:
        return GenerateFinal(response=text, **build_final_fields(trace))


def build_final_fields(trace: RequestTrace) -> dict[str, Any]:
    """Return the arguments for FinalFields."""
    engine_ms = trace.engine_ms or 0.0
    first_text_ms = trace.first_token_ms or trace.total_ms  # without text, `eval_duration` is 0
    is_warm_up = trace.arrival.draft.is_warm_up
    return {
        "model": trace.model_name,
        "created_at": format_time(trace.arrival),
        "done_reason": "load" if is_warm_up else ollama_done_reason(trace),
        "total_duration": _to_nanoseconds(trace.total_ms),
        "prompt_eval_count": trace.prompt_tokens,
        "prompt_eval_duration": _to_nanoseconds(engine_ms),
        "eval_count": trace.generated_tokens,
        "eval_duration": _to_nanoseconds(trace.total_ms - first_text_ms),
    }


def format_time(arrival: IncomingRequest) -> str:
    """Return the time of the request in ISO 8601, UTC."""
    moment = datetime.fromtimestamp(arrival.occurred_at_ms / 1000, UTC)
    return moment.isoformat().replace("+00:00", "Z")


def _to_nanoseconds(ms: float) -> int:
    return max(round(ms * 1_000_000), 0)  # a duration is never negative


_decoder: Final = msgspec.json.Decoder(GenerateBody)


def parse_request(body: bytes) -> ParsedRequest:
    """Parse a request. Raises BadRequest."""
    request = decode_body(_decoder, body)
    options = request.options or Options()
    draft = build_fim_request(
        request.prompt or "",
        suffix=request.suffix or None,  # plugins send an empty suffix with a rendered prompt
        max_tokens=options.num_predict,
        stop=normalize_stops(options.stop),
    )
    # `draft.is_warm_up`: `num_predict` is 0. A request without prompt and suffix only asks to load
    # the model. It counts as a warm-up, too, with nothing to prefill.
    is_warm_up = draft.is_warm_up or not (request.prompt or request.suffix)
    trigger = Trigger.PREFETCH if is_warm_up else Trigger.AUTOMATIC
    return ParsedRequest(
        protocol="ollama",
        draft=replace(
            draft, is_warm_up=is_warm_up, trigger=trigger, model=read_model_name(request.model)
        ),
        make_writer=make_response_writer(
            OllamaResponseEncoder, None if request.stream is False else NDJSON
        ),
    )


def decode_body(decoder: msgspec.json.Decoder[Body], body: bytes) -> Body:
    """Decode a body. Raises BadRequest, also if an unsupported field is set.

    An empty body gets Ollama's own message.
    """
    if not body:
        raise BadRequest("invalid_json", "missing request body")
    request = decode(decoder, body)
    if isinstance(request, UnsupportedFields):
        refuse_capability("format", request.format)
        refuse_capability("thinking", request.think)
        refuse_capability("images", request.images)
    return request


def refuse_capability(name: str, is_requested: object) -> None:
    """Reject the request if it asks for a capability that the models lack.

    The message is Ollama's, because clients recognize it. Raises BadRequest.
    """
    if is_requested:
        raise BadRequest("unsupported_parameter", f"this model does not support {name}")


def read_model_name(text: str | None) -> str:
    """Return the model's name without `:latest`, which clients add to names without a tag."""
    return (text or "").removesuffix(":latest")


def error_body(error: CompletionError) -> bytes:
    if isinstance(error, UnknownModel) and error.name:
        return encode(OllamaError(f"model '{error.name}' not found"))
    return encode(OllamaError(error.message))


DIALECT: Final = Dialect(parse_request=parse_request, encode_error=error_body)
