"""`POST /v1/fim/completions` in Mistral's shapes: the texts before and after the cursor."""

from functools import partial
from typing import Final

import msgspec

from inference.completion.incoming_request import Arrival
from inference.completion.request_trace import Account
from inference.consumers.completions import Dialect, Question
from inference.consumers.finish_reasons import caret_finish, mistral_finish_reason
from inference.consumers.openai_schemas import Usage, usage_of
from inference.consumers.request_bodies import Stops, decode, draft_of_prompt, stops_of
from inference.consumers.responses import SSE, answering, encode
from inference.errors import CompletionError


class FimBody(msgspec.Struct, frozen=True):
    prompt: str
    suffix: str | None = None
    model: str | None = None
    max_tokens: int | None = None
    stop: Stops = None
    stream: bool | None = None


class Message(msgspec.Struct, frozen=True):
    content: str
    role: str = "assistant"


class WholeChoice(msgspec.Struct, frozen=True):
    message: Message
    finish_reason: str
    index: int = 0


class ChunkChoice(msgspec.Struct, frozen=True):
    delta: Message
    finish_reason: str | None
    index: int = 0


class FimCompletion(msgspec.Struct, frozen=True):
    id: str
    created: int  # Unix seconds
    model: str
    choices: list[WholeChoice]
    usage: Usage
    object: str = "chat.completion"
    caret_finish: str | msgspec.UnsetType = msgspec.UNSET  # left out: finish_reason tells it


class FimChunk(msgspec.Struct, frozen=True):
    id: str
    created: int
    model: str
    choices: list[ChunkChoice]
    object: str = "chat.completion.chunk"
    usage: Usage | msgspec.UnsetType = msgspec.UNSET  # with the last chunk
    caret_finish: str | msgspec.UnsetType = msgspec.UNSET  # with the last chunk


class FimError(msgspec.Struct, frozen=True):
    message: str
    type: str  # one of platform/docs/protocol.md's codes
    object: str = "error"
    param: str | None = None
    code: str | None = None


class FimShape:
    def __init__(self, arrival: Arrival, *, model: str) -> None:
        self._id = f"cmpl-{arrival.request_id}"
        self._created = arrival.occurred_at_ms // 1000
        self._model = model

    def part(self, text: str) -> FimChunk:
        return self._chunk(ChunkChoice(Message(text), None))

    def end(self, account: Account) -> list[FimChunk]:
        last = self._chunk(ChunkChoice(Message(""), mistral_finish_reason(account)))
        finish = caret_finish(account)
        return [msgspec.structs.replace(last, usage=usage_of(account), caret_finish=finish)]

    def whole(self, text: str, account: Account) -> FimCompletion:
        return FimCompletion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[WholeChoice(Message(text), mistral_finish_reason(account))],
            usage=usage_of(account),
            caret_finish=caret_finish(account),
        )

    def _chunk(self, choice: ChunkChoice) -> FimChunk:
        return FimChunk(self._id, self._created, self._model, [choice])


_decoder: Final = msgspec.json.Decoder(FimBody)


def understand(body: bytes) -> Question:
    """Raises BadRequest."""
    parsed = decode(_decoder, body)
    return Question(
        protocol="mistral",
        draft=draft_of_prompt(
            parsed.prompt,
            suffix=parsed.suffix or "",
            max_tokens=parsed.max_tokens,
            stop=stops_of(parsed.stop),
        ),
        client=answering(
            partial(FimShape, model=parsed.model or ""), SSE if parsed.stream else None
        ),
    )


def error_body(error: CompletionError) -> bytes:
    return encode(FimError(error.message, error.code))


DIALECT: Final = Dialect(understand=understand, error_body=error_body)
