"""`POST /v1/chat/completions` in OpenAI's format, on the quality tier.

Messages may contain text only. Images, tool calls and other content are rejected. `caret_files` is
an extension: files as context, of which the policy's content exclusion removes some. `caret_path`
and `caret_repository` are the headers X-Caret-Path and X-Caret-Repository, which hold no Unicode.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, Literal

import msgspec

from caret.contracts.policy import Mode, Trigger
from inference.completion.incoming_request import (
    ChatMessage,
    ContextFile,
    IncomingRequest,
    UnvalidatedRequest,
)
from inference.completion.request_trace import RequestTrace
from inference.consumers.dialects.openai_completions import StreamOptions, check_choices
from inference.consumers.http.completions import Dialect, ParsedRequest
from inference.consumers.http.finish_reasons import caret_finish_reason, openai_finish_reason
from inference.consumers.http.openai_schemas import Usage, build_usage, error_body
from inference.consumers.http.request_bodies import Stops, decode, normalize_stops
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


class ChatBody(msgspec.Struct, frozen=True):
    messages: list[ChatRequestMessage]
    model: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None  # newer name of max_tokens
    n: int | None = None
    stop: Stops = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    caret_path: str = ""  # of the file that the chat is about
    caret_repository: str = ""
    caret_files: list[ChatFile] = []  # the most important one first


class AssistantMessage(msgspec.Struct, frozen=True):
    content: str
    role: str = "assistant"


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    content: str | None = None
    role: str | None = None


class MessageChoice(msgspec.Struct, frozen=True):
    message: AssistantMessage
    finish_reason: str
    index: int = 0
    logprobs: None = None


class DeltaChoice(msgspec.Struct, frozen=True):
    delta: Delta
    finish_reason: str | None
    index: int = 0
    logprobs: None = None


class ChatCompletion(msgspec.Struct, frozen=True):
    id: str
    created: int  # Unix seconds
    model: str  # the client's name for it
    choices: list[MessageChoice]
    usage: Usage
    object: str = "chat.completion"
    caret_finish_reason: str | msgspec.UnsetType = msgspec.UNSET  # left out: finish_reason is exact


class ChatChunk(msgspec.Struct, frozen=True):
    id: str
    created: int
    model: str
    choices: list[DeltaChoice]
    object: str = "chat.completion.chunk"
    usage: Usage | msgspec.UnsetType = msgspec.UNSET  # only in the last chunk, on request
    caret_finish_reason: str | msgspec.UnsetType = msgspec.UNSET  # with the last choice


class ChatResponseEncoder:
    def __init__(self, arrival: IncomingRequest, *, model: str, wants_usage: bool) -> None:
        self._id = f"chatcmpl-{arrival.request_id}"
        self._created = arrival.occurred_at_ms // 1000
        self._model = model
        self._wants_usage = wants_usage
        self._role: str | None = "assistant"  # None: already sent

    def encode_delta(self, text: str) -> ChatChunk:
        role, self._role = self._role, None
        return self._build_chunk(DeltaChoice(Delta(text, role), None))

    def encode_end(self, trace: RequestTrace) -> list[ChatChunk]:
        last = self._build_chunk(DeltaChoice(Delta(role=self._role), openai_finish_reason(trace)))
        last = msgspec.structs.replace(last, caret_finish_reason=caret_finish_reason(trace))
        if not self._wants_usage:
            return [last]
        return [last, msgspec.structs.replace(self._build_chunk(), usage=build_usage(trace))]

    def encode_full(self, text: str, trace: RequestTrace) -> ChatCompletion:
        return ChatCompletion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[MessageChoice(AssistantMessage(text), openai_finish_reason(trace))],
            usage=build_usage(trace),
            caret_finish_reason=caret_finish_reason(trace),
        )

    def _build_chunk(self, *choices: DeltaChoice) -> ChatChunk:
        return ChatChunk(self._id, self._created, self._model, list(choices))


_decoder: Final = msgspec.json.Decoder(ChatBody)


def parse_request(body: bytes) -> ParsedRequest:
    """Parse a request. Raises BadRequest."""
    request = decode(_decoder, body)
    check_choices(request.n)
    if not request.messages:
        raise BadRequest("invalid_field", "messages must have at least one entry.")
    limit = request.max_completion_tokens
    draft = UnvalidatedRequest(
        mode=Mode.CHAT,
        prefix="",
        # One more than the limit, so that `receive` rejects too many messages.
        messages=tuple(_to_message(each) for each in request.messages[: MAX_MESSAGES + 1]),
        path=request.caret_path,
        repository=request.caret_repository,
        files=_to_files(request.caret_files[: MAX_FILES + 1]),
        max_tokens=request.max_tokens if limit is None else limit,
        stop=normalize_stops(request.stop),
        trigger=Trigger.MANUAL,
        model=request.model or "",
    )
    options = request.stream_options or StreamOptions()
    make_encoder = partial(
        ChatResponseEncoder, model=request.model or "", wants_usage=bool(options.include_usage)
    )
    client = make_response_writer(make_encoder, SSE if request.stream else None)
    return ParsedRequest(protocol="chat", draft=draft, client=client)


def _to_files(files: Sequence[ChatFile]) -> tuple[ContextFile, ...]:
    """Return the files in the client's order, which `receive` keeps: later ones count as older."""
    return tuple(
        ContextFile(file.path, file.text, edited_at=-float(index))
        for index, file in enumerate(files)
    )


def _to_message(message: ChatRequestMessage) -> ChatMessage:
    content = message.content
    text = content if isinstance(content, str) else "".join(part.text for part in content)
    return ChatMessage(role=_ROLES.get(message.role, message.role), text=text)


DIALECT: Final = Dialect(parse_request=parse_request, encode_error=error_body)
