"""Usage and errors in the format of all OpenAI protocols."""

import msgspec

from inference.completion.request_trace import RequestTrace
from inference.consumers.http.responses import encode
from inference.errors import CompletionError


class PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int


class Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


class ErrorDetails(msgspec.Struct, frozen=True):
    message: str
    type: str  # invalid_request_error: the client's fault; server_error: ours
    code: str  # one of platform/docs/protocol.md
    param: str | None = None  # the field; null: the message names it


class ErrorResponse(msgspec.Struct, frozen=True):
    error: ErrorDetails


def build_usage(trace: RequestTrace) -> Usage:
    return Usage(
        prompt_tokens=trace.prompt_tokens,
        completion_tokens=trace.generated_tokens,
        total_tokens=trace.prompt_tokens + trace.generated_tokens,
        prompt_tokens_details=PromptDetails(trace.cached_tokens or 0),
    )


def error_body(error: CompletionError) -> bytes:
    kind = "invalid_request_error" if error.http_status < 500 else "server_error"
    return encode(ErrorResponse(ErrorDetails(error.message, kind, error.code, error.param)))
