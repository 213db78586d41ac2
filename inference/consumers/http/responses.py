"""Response writers for all dialects: streamed or in one piece.

The JSON is compact, because some plugins search the raw body. Some clients take a comment, or an
event without a choice, as the end of the stream. So streams contain no comments, and contain an
event without a choice only if the client requests it (OpenAI's `include_usage`).
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
from inference.consumers.http.finish_reasons import build_finish_headers
from inference.errors import CompletionError

encode: Final = msgspec.json.Encoder().encode


class ResponseEncoder(Protocol):
    """Encodes the response of one request in one dialect."""

    def encode_delta(self, text: str, trace: RequestTrace) -> msgspec.Struct:
        """Return the stream event for a piece of text."""

    def encode_end(self, trace: RequestTrace) -> Sequence[msgspec.Struct]:
        """Return the last events of a stream."""

    def encode_full(self, text: str, trace: RequestTrace) -> msgspec.Struct:
        """Return the whole response, if it is not streamed."""


class HttpExchange(Protocol):
    """The consumer as response writers use it. Its coroutines may raise ClientDisconnected."""

    async def start_response(self, status: int, headers: Headers) -> None: ...
    async def send_body_part(self, body: bytes, *, is_last: bool = False) -> None: ...
    async def send_json(self, body: bytes, headers: Sequence[Header] = ()) -> None: ...
    async def send_error(self, error: CompletionError) -> None: ...
    def encode_error(self, error: CompletionError) -> bytes: ...
    def on_suggested(self, trace: RequestTrace, text: str) -> None:
        """Remember the suggestion: the client will report its outcome in another request."""


@dataclass(frozen=True, slots=True)
class StreamFraming:
    """The framing of events in the body of a stream."""

    content_type: bytes
    before: bytes  # precedes each event
    after: bytes  # follows each event
    end: bytes  # follows the last event

    def frame(self, event: bytes) -> bytes:
        return self.before + event + self.after

    def build_headers(self) -> Headers:
        return [
            (b"content-type", self.content_type),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),  # otherwise nginx buffers the stream
        ]


SSE: Final = StreamFraming(
    b"text/event-stream; charset=utf-8", b"data: ", b"\n\n", b"data: [DONE]\n\n"
)
SSE_WITHOUT_DONE: Final = StreamFraming(
    b"text/event-stream; charset=utf-8", b"data: ", b"\n\n", b""
)
NDJSON: Final = StreamFraming(b"application/x-ndjson", b"", b"\n", b"")


class StreamingResponseWriter:
    """Writes a streamed completion. After the first byte, an error is an event of the stream."""

    def __init__(
        self, http: HttpExchange, encoder: ResponseEncoder, framing: StreamFraming
    ) -> None:
        self._http = http
        self._encoder = encoder
        self._framing = framing
        self._has_begun = False

    async def write_delta(self, text: str, trace: RequestTrace) -> None:
        await self._start_stream()
        event = encode(self._encoder.encode_delta(text, trace))
        await self._http.send_body_part(self._framing.frame(event))

    async def write_done(self, trace: RequestTrace) -> None:
        await self._start_stream(build_finish_headers(trace))
        events = [self._framing.frame(encode(event)) for event in self._encoder.encode_end(trace)]
        await self._http.send_body_part(b"".join(events) + self._framing.end, is_last=True)

    async def write_error(self, error: CompletionError, _trace: RequestTrace) -> None:
        if not self._has_begun:
            await self._http.send_error(error)
            return
        await self._http.send_body_part(
            self._framing.frame(self._http.encode_error(error)), is_last=True
        )

    async def _start_stream(self, more_headers: Sequence[Header] = ()) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        headers = [*self._framing.build_headers(), *more_headers]
        await self._http.start_response(200, headers)


class FullResponseWriter:
    """Writes a completion in one piece."""

    def __init__(
        self, http: HttpExchange, encoder: ResponseEncoder, *, has_outcome_reports: bool = False
    ) -> None:
        """`has_outcome_reports`: the client will report the outcome in another request."""
        self._http = http
        self._encoder = encoder
        self._has_outcome_reports = has_outcome_reports
        self._texts: list[str] = []

    async def write_delta(self, text: str, _trace: RequestTrace) -> None:
        self._texts.append(text)

    async def write_done(self, trace: RequestTrace) -> None:
        # The pipeline may have written text before the filter withheld it. The client has not
        # received any of it.
        text = "" if trace.finish_reason is FinishReason.FILTERED else "".join(self._texts)
        if self._has_outcome_reports:
            self._http.on_suggested(trace, text)
        body = encode(self._encoder.encode_full(text, trace))
        await self._http.send_json(body, build_finish_headers(trace))

    async def write_error(self, error: CompletionError, _trace: RequestTrace) -> None:
        await self._http.send_error(error)


def make_response_writer(
    make_encoder: Callable[[IncomingRequest], ResponseEncoder], framing: StreamFraming | None
) -> Callable[[HttpExchange, IncomingRequest], ResponseWriter]:
    """Return a function that makes the writer. If `framing` is None, nothing is streamed."""
    if framing is None:
        return lambda http, arrival: FullResponseWriter(http, make_encoder(arrival))
    return lambda http, arrival: StreamingResponseWriter(http, make_encoder(arrival), framing)
