"""`POST /v1/fim/completions` in Mistral's format: the texts before and after the cursor."""

from typing import Final

import msgspec

from inference.completion.incoming_request import IncomingRequest
from inference.completion.request_trace import RequestTrace
from inference.consumers.http.completions import Dialect, ParsedRequest
from inference.consumers.http.finish_reasons import caret_finish_reason, mistral_finish_reason
from inference.consumers.http.openai_schemas import Usage, build_usage
from inference.consumers.http.request_bodies import (
    Stops,
    build_fim_request,
    decode,
    normalize_stops,
    require_text,
)
from inference.consumers.http.responses import SSE, encode, make_response_writer
from inference.errors import CompletionError


class FimBody(msgspec.Struct, frozen=True):
    prompt: str  # the text before the cursor
    suffix: str | None = None  # the text after the cursor
    model: str | None = None
    max_tokens: int | None = None
    stop: Stops = None
    stream: bool | None = None


class FimMessage(msgspec.Struct, frozen=True):
    content: str
    role: str = "assistant"


class WholeChoice(msgspec.Struct, frozen=True):
    message: FimMessage
    finish_reason: str
    index: int = 0


class ChunkChoice(msgspec.Struct, frozen=True):
    delta: FimMessage
    finish_reason: str | None  # None: another chunk follows
    index: int = 0


class FimCompletion(msgspec.Struct, frozen=True):
    id: str
    created: int  # Unix seconds
    model: str
    choices: list[WholeChoice]
    usage: Usage
    object: str = "chat.completion"
    # The exact finish reason; left out if `finish_reason` says the same.
    caret_finish_reason: str | msgspec.UnsetType = msgspec.UNSET


class FimChunk(msgspec.Struct, frozen=True):
    id: str
    created: int  # Unix seconds
    model: str
    choices: list[ChunkChoice]
    object: str = "chat.completion.chunk"
    usage: Usage | msgspec.UnsetType = msgspec.UNSET  # only in the last chunk
    # Only in the last chunk: the exact finish reason; left out if `finish_reason` says the same.
    caret_finish_reason: str | msgspec.UnsetType = msgspec.UNSET


class FimError(msgspec.Struct, frozen=True):
    message: str
    type: str  # one of the codes in platform/docs/protocol.md
    object: str = "error"
    param: str | None = None  # the invalid field; null: the message alone describes the error
    code: str | None = None  # always null: `type` has the code


class FimResponseEncoder:
    def __init__(self, arrival: IncomingRequest) -> None:
        self._id = f"cmpl-{arrival.request_id}"
        self._created = arrival.occurred_at_ms // 1000

    def encode_delta(self, text: str, trace: RequestTrace) -> FimChunk:
        return self._build_chunk(trace, ChunkChoice(FimMessage(text), finish_reason=None))

    def encode_end(self, trace: RequestTrace) -> list[FimChunk]:
        last = self._build_chunk(trace, ChunkChoice(FimMessage(""), mistral_finish_reason(trace)))
        finish_reason = caret_finish_reason(trace)
        return [
            msgspec.structs.replace(
                last, usage=build_usage(trace), caret_finish_reason=finish_reason
            )
        ]

    def encode_full(self, text: str, trace: RequestTrace) -> FimCompletion:
        return FimCompletion(
            id=self._id,
            created=self._created,
            model=trace.model_name,
            choices=[WholeChoice(FimMessage(text), mistral_finish_reason(trace))],
            usage=build_usage(trace),
            caret_finish_reason=caret_finish_reason(trace),
        )

    def _build_chunk(self, trace: RequestTrace, choice: ChunkChoice) -> FimChunk:
        return FimChunk(self._id, self._created, trace.model_name, [choice])


_decoder: Final = msgspec.json.Decoder(FimBody)


def parse_request(body: bytes) -> ParsedRequest:
    """Parse a request. Raises BadRequest."""
    request = decode(_decoder, body)
    require_text(request.prompt, request.suffix)
    return ParsedRequest(
        protocol="mistral",
        draft=build_fim_request(
            request.prompt,
            # Not None: without a suffix, too, the prompt is only the text before the cursor.
            suffix=request.suffix or "",
            max_tokens=request.max_tokens,
            stop=normalize_stops(request.stop),
            model=request.model or "",
        ),
        make_writer=make_response_writer(FimResponseEncoder, SSE if request.stream else None),
    )


def error_body(error: CompletionError) -> bytes:
    return encode(FimError(error.message, error.code, param=error.param))


DIALECT: Final = Dialect(parse_request=parse_request, encode_error=error_body)
