"""Usage and errors in OpenAI's format, which several dialects share."""

import msgspec

from inference.completion.request_trace import RequestTrace
from inference.consumers.http.responses import encode
from inference.errors import CompletionError


class PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int  # also 0 if the engine did not report them


class Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int  # generated tokens
    total_tokens: int  # the sum of the two
    prompt_tokens_details: PromptDetails


class ErrorDetails(msgspec.Struct, frozen=True):
    message: str
    type: str  # invalid_request_error: the client's fault; server_error: ours
    code: str  # one of the codes in platform/docs/protocol.md
    param: str | None = None  # the invalid field; null: the message alone describes the error


class ErrorResponse(msgspec.Struct, frozen=True):
    error: ErrorDetails


def build_usage(*traces: RequestTrace) -> Usage:
    """Build the usage of a response: the sum over its completions."""
    prompt_tokens = sum(trace.prompt_tokens for trace in traces)
    generated_tokens = sum(trace.generated_tokens for trace in traces)
    return Usage(
        prompt_tokens=prompt_tokens,
        completion_tokens=generated_tokens,
        total_tokens=prompt_tokens + generated_tokens,
        prompt_tokens_details=PromptDetails(sum(trace.cached_tokens or 0 for trace in traces)),
    )


def error_body(error: CompletionError) -> bytes:
    kind = "invalid_request_error" if error.http_status < 500 else "server_error"
    return encode(ErrorResponse(ErrorDetails(error.message, kind, error.code, error.param)))
