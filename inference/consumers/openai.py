"""`POST /v1/completions` in OpenAI's shapes: streamed as server-sent events, or whole.

With `suffix` the prompt is the text before the cursor, without it the prompt is taken as it is.
Unknown fields are ignored.
"""

import msgspec

from caret.contracts.policy import Mode
from inference.completion.arrival import Arrival, Draft
from inference.completion.client import ClientGone
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


class OpenAIConsumer(HttpConsumer):
    def __init__(self, plane: DataPlane) -> None:
        super().__init__()
        self._plane = plane
        self._received_s = plane.clock.monotonic_s()

    async def answer(self, body: bytes) -> None:
        if self.scope["method"] != "POST":
            await self.refuse(405, "method_not_allowed", "Use POST.")
            return
        try:
            arrival, parsed = self._understand(body)
        except CompletionError as error:
            await self.refuse(error.http_status, error.code, error.message)
            return
        await serve(self._plane, arrival, self._client(arrival, parsed))

    async def refuse(self, status: int, code: str, message: str) -> None:
        try:
            await self.send_whole(
                status, b"application/json", error_body(status, code=code, message=message)
            )
        except ClientGone:
            return

    def _understand(self, body: bytes) -> tuple[Arrival, CompletionBody]:
        """Raises Unauthenticated before the body is parsed: strangers get no work done."""
        key_text = bearer_key(self.scope)
        now_ms = self._plane.clock.now_ms()
        authenticate(self._plane.authority, key_text, now_ms=now_ms)
        parsed = _parse(body)
        arrival = Arrival(
            protocol="openai",
            key_text=key_text,
            draft=_draft(parsed),
            received_s=self._received_s,
            occurred_at_ms=now_ms,
        )
        return arrival, parsed

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
