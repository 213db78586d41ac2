"""`POST /infill` in llama.cpp's format.

`input_prefix` and `input_suffix` are the lines before and after the cursor's line, `prompt` is the
beginning of that line, and `input_extra` has parts of other files. `n_predict` is the maximum
number of tokens: 0 only warms up the prefix cache, and a negative number stands for the mode's
default. `n_cmpl` is ignored: the response has one completion.
"""

from collections.abc import Sequence
from functools import partial
from heapq import nlargest
from typing import Any, Final

import msgspec

from caret.contracts.policy import Mode, Trigger
from inference.completion.generation_options import TimeLimits
from inference.completion.incoming_request import ContextFile, IncomingRequest, UnvalidatedRequest
from inference.completion.request_trace import RequestTrace
from inference.consumers.http.completions import Dialect, ParsedRequest
from inference.consumers.http.finish_reasons import caret_finish_reason, llama_stop_type
from inference.consumers.http.request_bodies import Stops, decode, normalize_stops, read_limit
from inference.consumers.http.responses import SSE_WITHOUT_DONE, encode, make_response_writer
from inference.errors import CompletionError
from inference.gateway.receive import MAX_FILES


class InfillExtraFile(msgspec.Struct, frozen=True):
    text: str
    filename: str | None = None
    # When the editor collected the text, by its own clock: a number, or Vim's pair of seconds and
    # fraction. Only the order counts.
    time: float | list[float] | None = None


class InfillBody(msgspec.Struct, frozen=True):
    input_prefix: str = ""
    input_suffix: str = ""
    prompt: str | None = None
    input_extra: list[InfillExtraFile] | None = None
    n_predict: int | None = None
    stop: Stops = None
    stream: bool | None = None
    response_fields: list[str] | None = None  # "timings/prompt_n" selects a nested field
    model: str | None = None
    t_max_prompt_ms: float | None = None  # until the first token; below 1: no limit
    t_max_predict_ms: float | None = None  # from the first token; below 1: no limit


class Timings(msgspec.Struct, frozen=True):
    """Counts of tokens (`_n`) and times, under llama.cpp's names. 0.0 if a time is unknown."""

    cache_n: int  # prompt tokens that were cached
    prompt_n: int  # prompt tokens that were not cached
    prompt_ms: float
    prompt_per_token_ms: float
    prompt_per_second: float
    predicted_n: int
    predicted_ms: float
    predicted_per_token_ms: float
    predicted_per_second: float


class InfillResponse(msgspec.Struct, frozen=True):
    content: str
    stop: bool = True
    index: int = 0
    model: str = ""
    stop_type: str = "eos"  # eos | limit | none
    tokens_predicted: int = 0  # generated tokens
    tokens_evaluated: int = 0  # prompt tokens
    tokens_cached: int = 0  # prompt tokens that were cached
    truncated: bool = False
    timings: Timings | None = None
    # Left out if `stop_type` says the same.
    caret_finish_reason: str | msgspec.UnsetType = msgspec.UNSET


class InfillChunk(msgspec.Struct, frozen=True):
    content: str
    index: int = 0
    stop: bool = False


class InfillErrorDetails(msgspec.Struct, frozen=True):
    code: int  # the HTTP status
    message: str
    type: str


class InfillError(msgspec.Struct, frozen=True):
    error: InfillErrorDetails


_MAX_TIME_LIMIT_MS: Final = 600_000  # longer than any completion may take
_ERROR_TYPES: Final = {  # by HTTP status
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    503: "unavailable_error",
}


class InfillResponseEncoder:
    def __init__(self, _arrival: IncomingRequest, *, fields: Sequence[str]) -> None:
        self._fields = fields

    def encode_delta(self, text: str, _trace: RequestTrace) -> InfillChunk:
        return InfillChunk(text)

    def encode_end(self, trace: RequestTrace) -> list[Any]:
        return [self.encode_full("", trace)]

    def encode_full(self, text: str, trace: RequestTrace) -> Any:
        response = InfillResponse(
            content=text,
            model=trace.model_name,
            stop_type=llama_stop_type(trace),
            tokens_predicted=trace.generated_tokens,
            tokens_evaluated=trace.prompt_tokens,
            tokens_cached=trace.cached_tokens or 0,
            timings=_to_timings(trace),
            caret_finish_reason=caret_finish_reason(trace),
        )
        return _select_fields(response, self._fields) if self._fields else response


def _to_timings(trace: RequestTrace) -> Timings:
    cached = trace.cached_tokens or 0
    prompt_ms = trace.engine_ms or 0.0
    first_ms = trace.first_token_ms or trace.total_ms  # without text, `predicted_ms` is 0
    predicted_ms = max(trace.total_ms - first_ms, 0.0)
    num_uncached = max(trace.prompt_tokens - cached, 0)
    return Timings(
        cache_n=cached,
        prompt_n=num_uncached,
        prompt_ms=prompt_ms,
        prompt_per_token_ms=_safe_ratio(prompt_ms, num_uncached),
        prompt_per_second=_safe_ratio(1000.0 * num_uncached, prompt_ms),
        predicted_n=trace.generated_tokens,
        predicted_ms=predicted_ms,
        predicted_per_token_ms=_safe_ratio(predicted_ms, trace.generated_tokens),
        predicted_per_second=_safe_ratio(1000.0 * trace.generated_tokens, predicted_ms),
    )


def _safe_ratio(numerator: float, denominator: float) -> float:
    """Return the quotient, or 0 instead of a division by 0."""
    return round(numerator / denominator, 3) if denominator else 0.0


def _select_fields(response: InfillResponse, fields: Sequence[str]) -> dict[str, object]:
    """Return the requested fields; unknown fields are left out.

    A nested field keeps its requested name, such as `timings/prompt_n`: llama.vim searches the raw
    text of the response for `"content"`, so the result must be flat.
    """
    flat = msgspec.to_builtins(response)
    flat |= {f"timings/{name}": value for name, value in flat["timings"].items()}
    return {name: flat[name] for name in fields if name in flat}


_decoder: Final = msgspec.json.Decoder(InfillBody)


def parse_request(body: bytes) -> ParsedRequest:
    """Parse a request. Raises BadRequest."""
    request = decode(_decoder, body)
    limit, is_warm_up = read_limit(request.n_predict)
    draft = UnvalidatedRequest(
        mode=Mode.FIM,
        prefix=request.input_prefix + (request.prompt or ""),
        suffix=request.input_suffix,
        files=_to_files(request.input_extra or []),
        max_tokens=limit,
        stop=normalize_stops(request.stop),
        trigger=Trigger.PREFETCH if is_warm_up else Trigger.AUTOMATIC,
        is_warm_up=is_warm_up,
        model=request.model or "",
        time_limits=TimeLimits(
            first_token_ms=_read_time_limit(request.t_max_prompt_ms),
            generation_ms=_read_time_limit(request.t_max_predict_ms),
        ),
    )
    make_encoder = partial(InfillResponseEncoder, fields=tuple(request.response_fields or ()))
    framing = SSE_WITHOUT_DONE if request.stream else None
    return ParsedRequest(
        protocol="infill", draft=draft, make_writer=make_response_writer(make_encoder, framing)
    )


def _read_time_limit(limit_ms: float | None) -> int | None:
    """Return the limit in milliseconds; None: no limit."""
    return None if limit_ms is None or limit_ms < 1 else round(min(limit_ms, _MAX_TIME_LIMIT_MS))


def _to_files(extras: list[InfillExtraFile]) -> tuple[ContextFile, ...]:
    """Return the MAX_FILES files that the editor collected last. It may send more."""
    newest = nlargest(MAX_FILES, extras, key=_collected_at)
    return tuple(
        ContextFile(extra.filename or "", extra.text, _collected_at(extra)) for extra in newest
    )


def _collected_at(extra: InfillExtraFile) -> float:
    """Return the time in the editor's unit; 0.0 without a time. Of Vim's pair, take the seconds."""
    time = extra.time
    if isinstance(time, list):
        return time[0] if time else 0.0
    return time or 0.0


def error_body(error: CompletionError) -> bytes:
    status = error.http_status
    error_type = _ERROR_TYPES.get(
        status, "invalid_request_error" if status < 500 else "server_error"
    )
    return encode(InfillError(InfillErrorDetails(status, error.message, error_type)))


DIALECT: Final = Dialect(parse_request=parse_request, encode_error=error_body)
