"""Several prompts in one request (a batch): one completion for each prompt, in one response.

A batch has at least two prompts (`BatchRequest`). Their completions run one after the other. Each
has its own ID, limits, costs and usage record. The first error ends the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from caret.contracts.usage import FinishReason
from inference.completion.request_trace import RequestTrace
from inference.consumers.http.finish_reasons import build_finish_headers, is_regular
from inference.consumers.http.responses import SSE, HttpExchange, encode
from inference.errors import CompletionError


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The completion of one prompt."""

    index: int  # of the prompt, from 0
    text: str
    trace: RequestTrace


class BatchEncoder(Protocol):
    """Encodes the response to a batch in one dialect."""

    def encode_part(self, part: BatchPart) -> msgspec.Struct:
        """Return the stream event for one part."""

    def encode_batch_end(self, parts: Sequence[BatchPart]) -> Sequence[msgspec.Struct]:
        """Return the last events of a stream; may be empty."""

    def encode_batch(self, parts: Sequence[BatchPart]) -> msgspec.Struct:
        """Return the whole response, if it is not streamed."""


class PartCollector:
    """The ResponseWriter of one part: it stores the completion or its error."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._texts: list[str] = []
        self.part: BatchPart | None = None  # None: not completed
        self.error: CompletionError | None = None

    async def write_delta(self, text: str, _trace: RequestTrace) -> None:
        self._texts.append(text)

    async def write_done(self, trace: RequestTrace) -> None:
        # The pipeline may have written text before the filter withheld it.
        is_withheld = trace.finish_reason is FinishReason.FILTERED
        text = "" if is_withheld else "".join(self._texts)
        self.part = BatchPart(self._index, text, trace)

    async def write_error(self, error: CompletionError, _trace: RequestTrace) -> None:
        self.error = error


class BatchResponseWriter:
    """Writes each part when it is completed (streamed), or all parts together at the end.

    All methods may raise ClientDisconnected.
    """

    def __init__(self, http: HttpExchange, encoder: BatchEncoder, *, is_streamed: bool) -> None:
        self._http = http
        self._encoder = encoder
        self._is_streamed = is_streamed
        self._parts: list[BatchPart] = []

    async def write_part(self, part: BatchPart) -> None:
        if self._is_streamed:
            if not self._parts:
                await self._http.start_response(200, SSE.build_headers())
            await self._http.send_body_part(SSE.frame(encode(self._encoder.encode_part(part))))
        self._parts.append(part)

    async def write_done(self) -> None:
        """End the response. All parts must have been written."""
        if self._is_streamed:
            events = map(encode, self._encoder.encode_batch_end(self._parts))
            end = b"".join(map(SSE.frame, events)) + SSE.end
            await self._http.send_body_part(end, is_last=True)
            return
        # The header shows the first finish reason that the response itself cannot show exactly. If
        # there is none, it shows the reason of the first part.
        irregular_traces = (part.trace for part in self._parts if not is_regular(part.trace))
        headers = build_finish_headers(next(irregular_traces, self._parts[0].trace))
        await self._http.send_json(encode(self._encoder.encode_batch(self._parts)), headers)

    async def write_error(self, error: CompletionError) -> None:
        if self._is_streamed and self._parts:  # the stream has begun
            event = SSE.frame(self._http.encode_error(error))
            await self._http.send_body_part(event, is_last=True)
        else:
            await self._http.send_error(error)
