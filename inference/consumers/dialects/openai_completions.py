"""`POST /v1/completions` in OpenAI's format.

With `suffix`, the prompt is the text before the cursor. Without `suffix`, the prompt may be a
fill-in-the-middle prompt that the client rendered for some model family. The gateway splits it at
its markers, and renders it again for our model. A prompt without such markers goes to the model
unchanged, except that secrets are removed. With `segments`, the body is in Tabby's format, because
Tabby uses the same URL path.

The response has one choice for each prompt, for any value of `n`. `temperature` is ignored and
decoding is greedy, so further choices would be equal.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from inference.completion.incoming_request import IncomingRequest, UnvalidatedRequest
from inference.completion.request_trace import RequestTrace
from inference.consumers.dialects import tabby_completions
from inference.consumers.http.batches import BatchPart
from inference.consumers.http.completions import BatchRequest, Dialect, ParsedRequest
from inference.consumers.http.finish_reasons import caret_finish_reason, openai_finish_reason
from inference.consumers.http.openai_schemas import Usage, build_usage, error_body
from inference.consumers.http.request_bodies import (
    Stops,
    build_fim_request,
    decode,
    normalize_stops,
    read_prompts,
    refuse_if,
    require_text,
)
from inference.consumers.http.responses import SSE, make_response_writer
from inference.errors import BadRequest


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool | None = None


class CompletionBody(msgspec.Struct, frozen=True):
    prompt: str | list[str] | None = None
    model: str | None = None
    suffix: str | None = None
    max_tokens: int | None = None
    n: int | None = None  # number of choices; checked, but otherwise ignored
    stop: Stops = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    # `echo` and `logprobs` are rejected if they have an effect.
    echo: bool | None = None
    logprobs: int | bool | None = None
    # Tabby's field. `tabby_completions` parses it.
    segments: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class CompletionChoice(msgspec.Struct, frozen=True):
    text: str
    finish_reason: str | None  # None: more text of this choice follows
    index: int = 0
    logprobs: None = None


class Completion(msgspec.Struct, frozen=True):
    """A response or a stream event. A stream has its usage in a separate last event, on request."""

    id: str
    created: int  # Unix seconds
    model: str
    choices: list[CompletionChoice]
    object: str = "text_completion"
    usage: Usage | msgspec.UnsetType = msgspec.UNSET
    # The exact finish reason; left out if `finish_reason` says the same, and for several prompts.
    caret_finish_reason: str | msgspec.UnsetType = msgspec.UNSET


class CompletionResponseEncoder:
    def __init__(self, arrival: IncomingRequest, *, wants_usage: bool) -> None:
        self._id = f"cmpl-{arrival.request_id}"
        self._created = arrival.occurred_at_ms // 1000
        self._wants_usage = wants_usage

    def encode_delta(self, text: str, trace: RequestTrace) -> Completion:
        return self._build_completion(trace, CompletionChoice(text, finish_reason=None))

    def encode_end(self, trace: RequestTrace) -> list[Completion]:
        last = self._build_finished("", trace)
        if not self._wants_usage:
            return [last]
        # In OpenAI's format, the event with the usage has no choices.
        usage = msgspec.structs.replace(self._build_completion(trace), usage=build_usage(trace))
        return [last, usage]

    def encode_full(self, text: str, trace: RequestTrace) -> Completion:
        full = self._build_finished(text, trace)
        return msgspec.structs.replace(full, usage=build_usage(trace))

    def encode_part(self, part: BatchPart) -> Completion:
        return self._build_completion(part.trace, _make_choice(part))

    def encode_batch_end(self, parts: Sequence[BatchPart]) -> list[Completion]:
        if not self._wants_usage:
            return []
        empty = self._build_completion(parts[-1].trace)
        return [msgspec.structs.replace(empty, usage=_sum_usage(parts))]

    def encode_batch(self, parts: Sequence[BatchPart]) -> Completion:
        choices = map(_make_choice, parts)
        completion = self._build_completion(parts[-1].trace, *choices)
        return msgspec.structs.replace(completion, usage=_sum_usage(parts))

    def _build_finished(self, text: str, trace: RequestTrace) -> Completion:
        choice = CompletionChoice(text, openai_finish_reason(trace))
        completion = self._build_completion(trace, choice)
        return msgspec.structs.replace(completion, caret_finish_reason=caret_finish_reason(trace))

    def _build_completion(self, trace: RequestTrace, *choices: CompletionChoice) -> Completion:
        return Completion(self._id, self._created, trace.model_name, list(choices))


def _make_choice(part: BatchPart) -> CompletionChoice:
    return CompletionChoice(part.text, openai_finish_reason(part.trace), part.index)


def _sum_usage(parts: Sequence[BatchPart]) -> Usage:
    return build_usage(*(part.trace for part in parts))


_decoder: Final = msgspec.json.Decoder(CompletionBody)


def parse_request(body: bytes) -> ParsedRequest | BatchRequest:
    """Parse a request. Raises BadRequest."""
    request = decode(_decoder, body)
    if bytes(request.segments) not in (b"", b"null"):  # b"": the field is absent
        return tabby_completions.parse_request(body)
    if request.prompt is None:
        raise BadRequest("invalid_field", "prompt is missing.", param="prompt")
    check_num_choices(request.n)
    refuse_if("echo", request.echo)
    refuse_if("logprobs", request.logprobs)
    prompts = read_prompts(request.prompt)
    drafts = [_build_draft(request, prompt) for prompt in prompts]
    options = request.stream_options or StreamOptions()
    make_encoder = partial(CompletionResponseEncoder, wants_usage=bool(options.include_usage))
    if len(drafts) > 1:
        return BatchRequest("openai", drafts, make_encoder, is_streamed=bool(request.stream))
    return ParsedRequest(
        protocol="openai",
        draft=drafts[0],
        make_writer=make_response_writer(make_encoder, SSE if request.stream else None),
    )


def _build_draft(request: CompletionBody, prompt: str) -> UnvalidatedRequest:
    require_text(prompt, request.suffix)
    return build_fim_request(
        prompt,
        suffix=request.suffix,
        max_tokens=request.max_tokens,
        stop=normalize_stops(request.stop),
        model=request.model or "",
    )


def check_num_choices(n: int | None) -> None:
    """Check the number of choices; None: not requested. Raises BadRequest."""
    if n is not None and n < 1:
        raise BadRequest("invalid_field", "n must be at least 1.", param="n")


DIALECT: Final = Dialect(parse_request=parse_request, encode_error=error_body)
