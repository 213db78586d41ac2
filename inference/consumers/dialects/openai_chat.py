"""`POST /v1/chat/completions` in OpenAI's format, on the quality tier.

Messages may contain text only. Images, tool calls and other content are rejected.

Three fields are extensions. `caret_files` contains files as context. The gateway drops files that
the policy excludes. `caret_path` and `caret_repository` replace the headers X-Caret-Path and
X-Caret-Repository, because headers cannot contain all Unicode characters.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal

import msgspec

from caret.contracts.policy import Mode, Trigger
from inference.completion.incoming_request import (
    ChatMessage,
    ContextFile,
    IncomingRequest,
    UnvalidatedRequest,
)
from inference.completion.request_trace import RequestTrace
from inference.consumers.dialects.openai_completions import StreamOptions, check_num_choices
from inference.consumers.http.completions import Dialect, ParsedRequest
from inference.consumers.http.finish_reasons import caret_finish_reason, openai_finish_reason
from inference.consumers.http.openai_schemas import Usage, build_usage, error_body
from inference.consumers.http.request_bodies import (
    Stops,
    build_sampling,
    decode,
    normalize_stops,
    read_limit,
    refuse_if,
)
from inference.consumers.http.responses import SSE, make_response_writer
from inference.errors import BadRequest
from inference.gateway.receive import MAX_FILES, MAX_MESSAGES

_ROLES: Final = {"developer": "system"}  # OpenAI's newer name for the system role


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    text: str


class ChatRequestMessage(msgspec.Struct, frozen=True):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]


class ChatFile(msgspec.Struct, frozen=True):
    path: str
    text: str


class ResponseFormat(msgspec.Struct, frozen=True):
    type: str = "text"


class ChatBody(msgspec.Struct, frozen=True):
    messages: list[ChatRequestMessage]
    model: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None  # newer name of max_tokens
    n_predict: int | None = None  # llama.cpp's name of max_tokens
    n: int | None = None  # number of choices; only 1 is supported
    stop: Stops = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    caret_path: str = ""  # of the file that the chat is about
    caret_repository: str = ""
    caret_files: list[ChatFile] = []  # the most important file first
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    # The following fields are rejected if they have an effect.
    logprobs: bool | None = None
    response_format: ResponseFormat | None = None
    tools: list[dict[str, Any]] | None = None
    functions: list[dict[str, Any]] | None = None  # older name of tools
    tool_choice: str | dict[str, Any] | None = None


class AssistantMessage(msgspec.Struct, frozen=True):
    content: str
    role: str = "assistant"


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    # None: left out of the JSON.
    content: str | None = None
    role: str | None = None  # only in the first chunk


class MessageChoice(msgspec.Struct, frozen=True):
    message: AssistantMessage
    finish_reason: str
    index: int = 0
    logprobs: None = None


class DeltaChoice(msgspec.Struct, frozen=True):
    delta: Delta
    finish_reason: str | None  # None: another chunk follows
    index: int = 0
    logprobs: None = None


class ChatCompletion(msgspec.Struct, frozen=True):
    id: str
    created: int  # Unix seconds
    model: str
    choices: list[MessageChoice]
    usage: Usage
    object: str = "chat.completion"
    # The exact finish reason; left out if `finish_reason` says the same.
    caret_finish_reason: str | msgspec.UnsetType = msgspec.UNSET


class ChatChunk(msgspec.Struct, frozen=True):
    id: str
    created: int  # Unix seconds
    model: str
    choices: list[DeltaChoice]
    object: str = "chat.completion.chunk"
    usage: Usage | msgspec.UnsetType = msgspec.UNSET  # only in the last chunk, on request
    # Only with the last choice: the exact finish reason; left out if `finish_reason` says the same.
    caret_finish_reason: str | msgspec.UnsetType = msgspec.UNSET


class ChatResponseEncoder:
    def __init__(self, arrival: IncomingRequest, *, wants_usage: bool) -> None:
        self._id = f"chatcmpl-{arrival.request_id}"
        self._created = arrival.occurred_at_ms // 1000
        self._wants_usage = wants_usage
        self._role: str | None = "assistant"  # None: already sent

    def encode_delta(self, text: str, trace: RequestTrace) -> ChatChunk:
        role, self._role = self._role, None
        return self._build_chunk(trace, DeltaChoice(Delta(text, role), finish_reason=None))

    def encode_end(self, trace: RequestTrace) -> list[ChatChunk]:
        choice = DeltaChoice(Delta(role=self._role), openai_finish_reason(trace))
        last = self._build_chunk(trace, choice)
        last = msgspec.structs.replace(last, caret_finish_reason=caret_finish_reason(trace))
        if not self._wants_usage:
            return [last]
        # In OpenAI's format, the chunk with the usage has no choices.
        return [last, msgspec.structs.replace(self._build_chunk(trace), usage=build_usage(trace))]

    def encode_full(self, text: str, trace: RequestTrace) -> ChatCompletion:
        return ChatCompletion(
            id=self._id,
            created=self._created,
            model=trace.model_name,
            choices=[MessageChoice(AssistantMessage(text), openai_finish_reason(trace))],
            usage=build_usage(trace),
            caret_finish_reason=caret_finish_reason(trace),
        )

    def _build_chunk(self, trace: RequestTrace, *choices: DeltaChoice) -> ChatChunk:
        return ChatChunk(self._id, self._created, trace.model_name, list(choices))


_decoder: Final = msgspec.json.Decoder(ChatBody)


def parse_request(body: bytes) -> ParsedRequest:
    """Parse a request. Raises BadRequest."""
    request = decode(_decoder, body)
    _check_options(request)
    limit, is_warm_up = read_limit(_read_max_tokens(request))
    draft = UnvalidatedRequest(
        mode=Mode.CHAT,
        prefix="",
        # One more than the limits, so that `receive` rejects too many messages or files.
        messages=tuple(_to_message(message) for message in request.messages[: MAX_MESSAGES + 1]),
        path=request.caret_path,
        repository=request.caret_repository,
        files=_to_files(request.caret_files[: MAX_FILES + 1]),
        max_tokens=limit,
        is_warm_up=is_warm_up,
        stop=normalize_stops(request.stop),
        trigger=Trigger.MANUAL,
        model=request.model or "",
        sampling=build_sampling(request.temperature, request.top_p, request.seed),
    )
    options = request.stream_options or StreamOptions()
    make_encoder = partial(ChatResponseEncoder, wants_usage=bool(options.include_usage))
    make_writer = make_response_writer(make_encoder, SSE if request.stream else None)
    return ParsedRequest(protocol="chat", draft=draft, make_writer=make_writer)


def _to_files(files: Sequence[ChatFile]) -> tuple[ContextFile, ...]:
    """Return the files in the same order.

    `receive` sorts files by time, newest first, so each file gets an older time than the file
    before it.
    """
    return tuple(
        ContextFile(file.path, file.text, edited_at=-float(index))
        for index, file in enumerate(files)
    )


def _check_options(request: ChatBody) -> None:
    """Check that there are messages, and reject options without support. Raises BadRequest."""
    if not request.messages:
        message = "messages must have at least one entry."
        raise BadRequest("invalid_field", message, param="messages")
    check_num_choices(request.n)
    refuse_if("n", request.n is not None and request.n > 1)
    refuse_if("logprobs", request.logprobs)
    refuse_if("response_format", request.response_format not in (None, ResponseFormat()))
    if request.tool_choice != "none":  # with "none", tools and functions have no effect
        refuse_if("tools", request.tools)
        refuse_if("functions", request.functions)


def _read_max_tokens(request: ChatBody) -> int | None:
    """Return the limit of tokens. Of its three names, the newest has priority."""
    limits = (request.max_completion_tokens, request.max_tokens, request.n_predict)
    return next((limit for limit in limits if limit is not None), None)


def _to_message(message: ChatRequestMessage) -> ChatMessage:
    content = message.content
    text = content if isinstance(content, str) else "".join(part.text for part in content)
    return ChatMessage(role=_ROLES.get(message.role, message.role), text=text)


DIALECT: Final = Dialect(parse_request=parse_request, encode_error=error_body)
