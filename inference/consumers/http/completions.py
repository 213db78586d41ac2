"""The HTTP completion consumer; each protocol adds its dialect.

The tenant's policy excludes files by path and repository. Both come from the body if it names them,
otherwise from the headers X-Caret-Path and X-Caret-Repository. If neither names the path, it comes
from a comment of the prompt.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final

from caret.foundation.ids import new_request_id
from caret.foundation.web.connections import mark_connection_authenticated
from inference.completion.incoming_request import IncomingRequest, UnvalidatedRequest
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import ResponseWriter
from inference.consumers.base import Scope, client_address, header, read_api_key, read_editor
from inference.consumers.http.batches import BatchEncoder, BatchResponseWriter, PartCollector
from inference.consumers.http.http_consumer import HttpConsumer
from inference.consumers.http.identical_requests import (
    IdenticalRequests,
    RunningRequest,
    SharedCompletion,
    SharingResponseWriter,
    identify,
)
from inference.consumers.http.responses import HttpExchange
from inference.errors import CompletionError
from inference.gateway.authenticate import authenticate, find_key_error
from inference.gateway.receive import receive
from inference.pipeline import DataPlane, serve

MAX_BODY_BYTES: Final = 8 * 1024 * 1024

MakeResponseWriter = Callable[[HttpExchange, IncomingRequest], ResponseWriter]


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A valid body: the requested completion and the format of the response."""

    protocol: str  # its name in usage records
    draft: UnvalidatedRequest
    make_writer: MakeResponseWriter


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A valid body with several prompts."""

    protocol: str  # its name in usage records
    drafts: Sequence[UnvalidatedRequest]  # at least two
    make_encoder: Callable[[IncomingRequest], BatchEncoder]
    is_streamed: bool


@dataclass(frozen=True, slots=True)
class Dialect:
    """The request and error formats of one protocol."""

    parse_request: Callable[[bytes], ParsedRequest | BatchRequest]  # raises BadRequest
    encode_error: Callable[[CompletionError], bytes]


class CompletionConsumer(HttpConsumer):
    max_body_bytes = MAX_BODY_BYTES
    methods = (b"POST",)

    def __init__(
        self, plane: DataPlane, dialect: Dialect, identical_requests: IdenticalRequests
    ) -> None:
        super().__init__()
        self._identical_requests = identical_requests
        self._plane = plane
        self._dialect = dialect
        self._received_s = plane.clock.monotonic_s()  # a consumer serves only one request
        self._principal: Principal  # set when `authorize` succeeds

    def authorize(self) -> None:
        now_ms = self._plane.clock.now_ms()
        key_text = read_api_key(self.scope)
        address = client_address(self.scope)
        self._principal = authenticate(
            self._plane.snapshots, key_text, now_ms=now_ms, address=address
        )
        mark_connection_authenticated(self.scope)

    def reserve_body(self, num_bytes: int) -> None:
        self._plane.body_quota.reserve(self._principal, num_bytes)

    def release_body(self, num_bytes: int) -> None:
        self._plane.body_quota.release(self._principal, num_bytes)

    async def respond(self, body: bytes) -> None:
        parsed_request = self._dialect.parse_request(body)
        with self._cancel_on_key_end():
            if isinstance(parsed_request, BatchRequest):
                await self._respond_to_batch(parsed_request)
            else:
                arrival = self._make_arrival(parsed_request.protocol, parsed_request.draft)
                await self._complete(arrival, parsed_request.make_writer)

    async def _respond_to_batch(self, batch: BatchRequest) -> None:
        first = self._make_arrival(batch.protocol, batch.drafts[0])
        encoder = batch.make_encoder(first)
        writer = BatchResponseWriter(self, encoder, is_streamed=batch.is_streamed)
        for index, draft in enumerate(batch.drafts):
            arrival = first if index == 0 else self._make_next_arrival(first, draft)
            collector = PartCollector(index)
            try:
                # The default value binds this part's collector, not the last one of the loop.
                await self._complete(arrival, lambda *_, collector=collector: collector)
            finally:  # also after a cancellation: if the key has ended, the collector has the error
                if collector.error is not None:
                    await writer.write_error(collector.error)
            if collector.part is None:  # the error has ended the batch
                return
            await writer.write_part(collector.part)
        await writer.write_done()

    def _make_arrival(self, protocol: str, draft: UnvalidatedRequest) -> IncomingRequest:
        return IncomingRequest(
            protocol=protocol,
            key_text=read_api_key(self.scope),
            address=client_address(self.scope),
            draft=_add_location(draft, self.scope),
            received_s=self._received_s,
            body_read_s=self._plane.clock.monotonic_s(),
            occurred_at_ms=self._plane.clock.now_ms(),
            trace_parent=header(self.scope, b"traceparent"),
            editor=read_editor(self.scope),
            request_id=self.request_id,
        )

    def _make_next_arrival(
        self, first: IncomingRequest, draft: UnvalidatedRequest
    ) -> IncomingRequest:
        """Make the arrival of a later prompt. Its waiting time is counted from now."""
        return replace(
            first,
            draft=_add_location(draft, self.scope),
            received_s=self._plane.clock.monotonic_s(),
            body_read_s=None,
            occurred_at_ms=self._plane.clock.now_ms(),
            request_id=new_request_id(),
        )

    async def _complete(self, arrival: IncomingRequest, make_writer: MakeResponseWriter) -> None:
        """Serve the request, or respond with the completion of an identical request."""
        if arrival.draft.is_warm_up:
            await self._warm_up(arrival, make_writer(self, arrival))
            return
        identity = identify(self._principal, arrival)
        if identity is None:
            await serve(self._plane, arrival, make_writer(self, arrival))
            return
        # If a completion cannot be shared, another of the waiting requests may run by then.
        while (running := self._identical_requests.find(identity)) is not None:
            shared = await self._wait_for(running, arrival, make_writer)
            if shared is not None:
                self.request_id = shared.arrival.request_id
                await shared.replay(make_writer(self, shared.arrival))
                return
        with self._identical_requests.run(identity, arrival) as running:
            writer = SharingResponseWriter(make_writer(self, arrival), running)
            await serve(self._plane, arrival, writer)

    async def _wait_for(
        self, running: RunningRequest, arrival: IncomingRequest, make_writer: MakeResponseWriter
    ) -> SharedCompletion | None:
        """Return the completion of the running request; None if it cannot be shared."""
        try:
            return await running.wait()
        except asyncio.CancelledError as cancelled:
            if cancelled.args and isinstance(cancelled.args[0], CompletionError):
                # The key or its tenant is no longer active (see `_cancel_on_key_end`).
                trace = RequestTrace(arrival=arrival, clock=self._plane.clock)
                await make_writer(self, arrival).write_error(cancelled.args[0], trace)
            raise

    async def _warm_up(self, arrival: IncomingRequest, writer: ResponseWriter) -> None:
        """Warm up in the background, and respond at once without text. Raises BadRequest."""
        receive(arrival)  # only validates the request
        # Raw prompts and chats have no known stable part.
        if not (arrival.draft.is_raw or arrival.draft.messages):
            self._plane.warmup_queue.add_warmup(self._principal.snapshot.tenant_id, arrival)
        await writer.write_done(RequestTrace(arrival=arrival, clock=self._plane.clock))

    def encode_error(self, error: CompletionError) -> bytes:
        return self._dialect.encode_error(error)

    def on_suggested(self, trace: RequestTrace, text: str) -> None:
        self._plane.suggestions.add(self._principal, trace.arrival.request_id, text)

    def _cancel_on_key_end(self) -> AbstractContextManager[None]:
        """Cancel the completion when its key or its tenant is no longer active.

        The client gets the reason as an error. In a stream, the error follows the text so far.
        Raises TooManyRequests when the block begins, if the key has too many connections.
        """
        task = asyncio.current_task()
        assert task is not None, "each consumer responds in its own task"
        return self._plane.snapshots.watch_key(
            self._principal.credential.key_id, lambda: task.cancel(self._find_key_error())
        )

    def _find_key_error(self) -> CompletionError:
        return find_key_error(
            self._plane.snapshots,
            read_api_key(self.scope),
            now_ms=self._plane.clock.now_ms(),
            address=client_address(self.scope),
        )


def _add_location(draft: UnvalidatedRequest, scope: Scope) -> UnvalidatedRequest:
    path = draft.path or header(scope, b"x-caret-path") or next(iter(draft.possible_paths), "")
    repository = draft.repository or header(scope, b"x-caret-repository") or ""
    return replace(draft, path=path, repository=repository)
