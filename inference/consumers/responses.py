"""The two ways in which a client may want its answer, for all dialects: streamed, or whole.

Compact JSON throughout: some editors' plugins search the raw body. No comments between events and
no event without a choice unless it was asked for: some take either for the end.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from caret.contracts.usage import FinishReason
from inference.completion.incoming_request import IncomingRequest
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import ResponseWriter
from inference.consumers.base import Header, Headers
from inference.consumers.finish_reasons import finish_headers
from inference.errors import CompletionError

encode: Final = msgspec.json.Encoder().encode


class ResponseEncoder(Protocol):
    """How one dialect writes what is generated: structs, made for one request."""

    def encode_delta(self, text: str) -> msgspec.Struct:
        """An event of a stream."""

    def encode_end(self, account: RequestTrace) -> Sequence[msgspec.Struct]:
        """The last events of a stream."""

    def encode_full(self, text: str, account: RequestTrace) -> msgspec.Struct:
        """The answer that is not streamed."""


class HttpExchange(Protocol):
    """What the answers need of their consumer; what is async may raise ClientDisconnected."""

    async def start_response(self, status: int, headers: Headers) -> None: ...
    async def send_body_part(self, body: bytes, *, is_last: bool = False) -> None: ...
    async def send_json(self, body: bytes, headers: Sequence[Header] = ()) -> None: ...
    async def send_error(self, error: CompletionError) -> None: ...
    def encode_error(self, error: CompletionError) -> bytes: ...
    def on_suggested(self, account: RequestTrace, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class StreamFraming:
    """How events stand in a stream's body."""

    content_type: bytes
    before: bytes
    after: bytes
    end: bytes  # what follows the last event


SSE: Final = StreamFraming(
    b"text/event-stream; charset=utf-8", b"data: ", b"\n\n", b"data: [DONE]\n\n"
)
SSE_WITHOUT_DONE: Final = StreamFraming(
    b"text/event-stream; charset=utf-8", b"data: ", b"\n\n", b""
)
NDJSON: Final = StreamFraming(b"application/x-ndjson", b"", b"\n", b"")


class StreamingResponseWriter:
    """The Client of a streamed completion. Once begun, an error is an event of the stream."""

    def __init__(self, http: HttpExchange, shape: ResponseEncoder, framing: StreamFraming) -> None:
        self._http = http
        self._shape = shape
        self._framing = framing
        self._has_begun = False

    async def write_delta(self, text: str) -> None:
        await self._start_stream()
        await self._http.send_body_part(self._frame_event(encode(self._shape.encode_delta(text))))

    async def write_done(self, account: RequestTrace) -> None:
        await self._start_stream(finish_headers(account))
        events = [self._frame_event(encode(event)) for event in self._shape.encode_end(account)]
        await self._http.send_body_part(b"".join(events) + self._framing.end, is_last=True)

    async def write_error(self, error: CompletionError, _account: RequestTrace) -> None:
        if not self._has_begun:
            await self._http.send_error(error)
            return
        await self._http.send_body_part(
            self._frame_event(self._http.encode_error(error)), is_last=True
        )

    async def _start_stream(self, more_headers: Sequence[Header] = ()) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        headers = [
            (b"content-type", self._framing.content_type),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),  # nginx would hold the stream back
            *more_headers,
        ]
        await self._http.start_response(200, headers)

    def _frame_event(self, body: bytes) -> bytes:
        return self._framing.before + body + self._framing.after


class FullResponseWriter:
    """The Client of a completion that is answered in one piece."""

    def __init__(
        self, http: HttpExchange, shape: ResponseEncoder, *, is_judged: bool = False
    ) -> None:
        """`is_judged`: its outcome will be reported, by other requests."""
        self._http = http
        self._shape = shape
        self._is_judged = is_judged
        self._texts: list[str] = []

    async def write_delta(self, text: str) -> None:
        self._texts.append(text)

    async def write_done(self, account: RequestTrace) -> None:
        # What was withheld may have begun to go out before that was known; here nobody has seen it.
        text = "" if account.finish_reason is FinishReason.FILTERED else "".join(self._texts)
        if self._is_judged:
            self._http.on_suggested(account, text)
        body = encode(self._shape.encode_full(text, account))
        await self._http.send_json(body, finish_headers(account))

    async def write_error(self, error: CompletionError, _account: RequestTrace) -> None:
        await self._http.send_error(error)


def make_response_writer(
    shape: Callable[[IncomingRequest], ResponseEncoder], framing: StreamFraming | None
) -> Callable[[HttpExchange, IncomingRequest], ResponseWriter]:
    """`framing` None: the answer comes whole."""
    if framing is None:
        return lambda http, arrival: FullResponseWriter(http, shape(arrival))
    return lambda http, arrival: StreamingResponseWriter(http, shape(arrival), framing)
