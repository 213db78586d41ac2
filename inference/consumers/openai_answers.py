"""OpenAI's shapes of a text completion, for the two ways in which a client may want it.

Compact JSON throughout: some editors' plugins search the raw body. All fields are always there:
some refuse a chunk that lacks one.
"""

import time
from typing import Any, Final, Protocol

import msgspec

from caret.contracts.usage import Finish
from caret.foundation.ids import RequestId
from inference.completion.account import Account
from inference.consumers.base import Headers
from inference.errors import CompletionError

_SSE: Final[Headers] = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would hold the stream back
]
_encode = msgspec.json.Encoder().encode


class Http(Protocol):
    """What the answers need of their consumer; all of it may raise ClientGone."""

    async def start(self, status: int, headers: Headers) -> None: ...
    async def send_part(self, body: bytes, *, is_last: bool = False) -> None: ...
    async def send_whole(self, status: int, content_type: bytes, body: bytes) -> None: ...
    async def refuse(self, status: int, code: str, message: str) -> None: ...


class _Answer:
    def __init__(self, http: Http, request_id: RequestId, *, model: str) -> None:
        self._http = http
        self._head = {
            "id": f"cmpl-{request_id}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model,  # what the client called it: it has no say in the matter
        }

    def _body(self, text: str, finish_reason: str | None) -> dict[str, Any]:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head, "choices": [choice]}


class EventStream(_Answer):
    """The Client of a streamed completion. Once begun, an error is an event of the stream."""

    def __init__(self, http: Http, request_id: RequestId, *, model: str, wants_usage: bool) -> None:
        super().__init__(http, request_id, model=model)
        self._wants_usage = wants_usage
        self._has_begun = False

    async def delta(self, text: str) -> None:
        await self._event(self._body(text, None))

    async def done(self, account: Account) -> None:
        await self._event(self._body("", _finish_reason(account)))
        if self._wants_usage:
            await self._event({**self._head, "choices": [], "usage": _usage(account)})
        await self._http.send_part(b"data: [DONE]\n\n", is_last=True)

    async def error(self, error: CompletionError, _account: Account) -> None:
        if not self._has_begun:
            await self._http.refuse(error.http_status, error.code, error.message)
            return
        body = error_body(error.http_status, code=error.code, message=error.message)
        await self._http.send_part(b"data: " + body + b"\n\n", is_last=True)

    async def _event(self, event: dict[str, Any]) -> None:
        if not self._has_begun:
            self._has_begun = True
            await self._http.start(200, _SSE)
        await self._http.send_part(b"data: " + _encode(event) + b"\n\n")


class WholeAnswer(_Answer):
    """The Client of a completion that is answered in one piece."""

    def __init__(self, http: Http, request_id: RequestId, *, model: str) -> None:
        super().__init__(http, request_id, model=model)
        self._texts: list[str] = []

    async def delta(self, text: str) -> None:
        self._texts.append(text)

    async def done(self, account: Account) -> None:
        body = self._body("".join(self._texts), _finish_reason(account))
        whole = _encode({**body, "usage": _usage(account)})
        await self._http.send_whole(200, b"application/json", whole)

    async def error(self, error: CompletionError, _account: Account) -> None:
        await self._http.refuse(error.http_status, error.code, error.message)


def error_body(status: int, *, code: str, message: str) -> bytes:
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"message": message, "type": kind, "param": None, "code": code}
    return _encode({"error": error})


def _finish_reason(account: Account) -> str:
    return "length" if account.ending is Finish.LENGTH else "stop"


def _usage(account: Account) -> dict[str, Any]:
    return {
        "prompt_tokens": account.prompt_tokens,
        "completion_tokens": account.generated_tokens,
        "total_tokens": account.prompt_tokens + account.generated_tokens,
        "prompt_tokens_details": {"cached_tokens": account.cached_tokens or 0},
    }
