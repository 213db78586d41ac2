"""`POST /v1/completions` in OpenAI's shapes: streamed as server-sent events, or whole.

With `suffix` the prompt is the text before the cursor, without it the prompt is taken as it is.
Unknown fields are ignored.
"""

import asyncio
from contextlib import AbstractContextManager
from functools import partial
from typing import Final

import msgspec

from caret.contracts.policy import Mode
from caret.contracts.usage import Finish
from inference.completion.arrival import Arrival, Draft
from inference.completion.client import ClientGone
from inference.completion.request import Principal
from inference.consumers.base import bearer_key
from inference.consumers.http import HttpConsumer
from inference.consumers.openai_answers import EventStream, WholeAnswer, error_body
from inference.errors import BadRequest, CompletionError
from inference.gateway.authenticate import authenticate
from inference.pipeline import DataPlane, serve


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False


class CompletionBody(msgspec.Struct, frozen=True):
    prompt: str | list[str]
    model: str = ""
    suffix: str | None = None
    max_tokens: int | None = None
    n: int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None


_decode = msgspec.json.Decoder(CompletionBody).decode


MAX_BODY_BYTES: Final = 8 * 1024 * 1024


class OpenAIConsumer(HttpConsumer):
    max_body_bytes = MAX_BODY_BYTES

    def __init__(self, plane: DataPlane) -> None:
        super().__init__()
        self._plane = plane
        self._received_s = plane.clock.monotonic_s()
        self._principal: Principal  # once `check` has let it in

    def check(self) -> None:
        if self.scope["method"] != "POST":
            raise BadRequest("method_not_allowed", "Use POST.", http_status=405)
        self._principal = authenticate(
            self._plane.authority, bearer_key(self.scope), now_ms=self._plane.clock.now_ms()
        )

    async def answer(self, body: bytes) -> None:
        try:
            arrival, parsed = self._understand(body)
            with self._ending_with_key():
                await serve(self._plane, arrival, self._client(arrival, parsed))
        except CompletionError as error:
            await self.refuse(error.http_status, error.code, error.message)

    async def refuse(self, status: int, code: str, message: str) -> None:
        try:
            await self.send_whole(
                status, b"application/json", error_body(status, code=code, message=message)
            )
        except ClientGone:
            return

    def _understand(self, body: bytes) -> tuple[Arrival, CompletionBody]:
        """Raises BadRequest."""
        parsed = _parse(body)
        arrival = Arrival(
            protocol="openai",
            key_text=bearer_key(self.scope),
            draft=_draft(parsed),
            received_s=self._received_s,
            occurred_at_ms=self._plane.clock.now_ms(),
        )
        return arrival, parsed

    def _ending_with_key(self) -> AbstractContextManager[None]:
        """A key that is revoked ends its completion; the client gets what there is, and an end."""
        task = asyncio.current_task()
        assert task is not None, "consumers answer in a task of their own"
        end = partial(task.cancel, Finish.CANCELLED.value)
        return self._plane.authority.watching(self._principal.credential.key_id, end)

    def _client(self, arrival: Arrival, parsed: CompletionBody) -> EventStream | WholeAnswer:
        if not parsed.stream:
            return WholeAnswer(self, arrival.request_id, model=parsed.model)
        options = parsed.stream_options or StreamOptions()
        return EventStream(
            self, arrival.request_id, model=parsed.model, wants_usage=options.include_usage
        )


def _parse(body: bytes) -> CompletionBody:
    try:
        parsed = _decode(body)
    except msgspec.ValidationError:
        raise BadRequest("bad_field", "A field is missing or malformed; see the API.") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise BadRequest("bad_json", "The body is not a JSON object.") from None
    if parsed.n not in (None, 1):
        raise BadRequest("bad_field", "n may only be 1.")
    return parsed


def _draft(parsed: CompletionBody) -> Draft:
    prompts = [parsed.prompt] if isinstance(parsed.prompt, str) else parsed.prompt
    if len(prompts) != 1:
        raise BadRequest("bad_field", "prompt must be one text.")
    stop = [parsed.stop] if isinstance(parsed.stop, str) else parsed.stop or []
    return Draft(
        mode=Mode.FIM,
        prefix=prompts[0],
        suffix=parsed.suffix or "",
        max_tokens=parsed.max_tokens,
        stop=tuple(stop),
        is_raw=parsed.suffix is None,
    )
