"""Identical requests at the same time share one completion.

Some plugins send a request several times at once, to get different suggestions (minuet: three
times). Greedy decoding would generate the same text for all of them. Rules:

1. Requests are identical if they have the same API key, protocol, editor and content. A key has
   one tenant, policy and set of modes, so if the first request is allowed, the others are, too.
2. The first request runs. The others wait, and get its ID, text and finish reason. They cost
   nothing and leave no usage record of their own.
3. The first request may end without a completion to share: after an error, superseded, shed, or
   because its client disconnected. Then one of the others runs, and the rest wait for that request.
4. At most MAX_WAITING requests wait for one request. Each further request runs, and is charged, on
   its own.
"""

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import Counter

from caret.contracts.usage import FinishReason
from inference.completion.incoming_request import IncomingRequest
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import ResponseWriter
from inference.errors import CompletionError

MAX_WAITING: Final = 8
SHARED_COMPLETIONS: Final = Counter(
    "caret_shared_completions",
    "Requests that were answered with the completion of an identical request.",
    registry=None,
)
# With these reasons, each of the identical requests would have ended in the same way.
_SHAREABLE: Final = (FinishReason.STOP, FinishReason.LENGTH, FinishReason.FILTERED)


@dataclass(frozen=True, slots=True)
class SharedCompletion:
    arrival: IncomingRequest  # of the request that ran
    text: str
    trace: RequestTrace

    async def replay(self, writer: ResponseWriter) -> None:
        """Send the completion to another client. Raises ClientDisconnected."""
        if self.text:
            await writer.write_delta(self.text, self.trace)
        await writer.write_done(self.trace)


@dataclass(slots=True)
class RunningRequest:
    """A request that runs. Identical requests may wait for it."""

    arrival: IncomingRequest
    num_waiting: int = 0  # identical requests that wait for this one
    _shared: SharedCompletion | None = None  # None: not completed, or not to be shared
    _has_ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> SharedCompletion | None:
        """Wait until the request ends. Return its completion, or None if it cannot be shared."""
        self.num_waiting += 1
        try:
            await self._has_ended.wait()
        finally:
            self.num_waiting -= 1
        if self._shared is not None:
            SHARED_COMPLETIONS.inc()
        return self._shared

    def on_completed(self, text: str, trace: RequestTrace) -> None:
        if trace.finish_reason in _SHAREABLE:
            # The pipeline may have written text before the filter withheld it.
            is_withheld = trace.finish_reason is FinishReason.FILTERED
            self._shared = SharedCompletion(self.arrival, "" if is_withheld else text, trace)
            self.end()

    def end(self) -> None:
        self._has_ended.set()


class IdenticalRequests:
    """The running requests of all HTTP clients. Used on one event loop only."""

    def __init__(self) -> None:
        self._running: dict[Hashable, RunningRequest] = {}

    def find(self, identity: Hashable) -> RunningRequest | None:
        """Return the running request to wait for; None if there is none or too many wait for it."""
        running = self._running.get(identity)
        return None if running is None or running.num_waiting >= MAX_WAITING else running

    @contextmanager
    def run(self, identity: Hashable, arrival: IncomingRequest) -> Iterator[RunningRequest]:
        """Let identical requests wait for this request until the block ends.

        If another identical request is running already, they wait for that one instead.
        """
        running = RunningRequest(arrival)
        self._running.setdefault(identity, running)
        try:
            yield running
        finally:
            running.end()
            if self._running.get(identity) is running:
                del self._running[identity]


def identify(principal: Principal, arrival: IncomingRequest) -> Hashable | None:
    """Return the identity of a request; None if equal requests may get different texts."""
    draft = arrival.draft
    if not draft.sampling.is_greedy:
        return None
    tenant_id, key_id = principal.snapshot.tenant_id, principal.credential.key_id
    return tenant_id, key_id, arrival.protocol, arrival.editor, draft


class SharingResponseWriter:
    """Writes to the client of the running request, and stores the completion for the others."""

    def __init__(self, writer: ResponseWriter, running: RunningRequest) -> None:
        self._writer = writer
        self._running = running
        self._texts: list[str] = []

    async def write_delta(self, text: str, trace: RequestTrace) -> None:
        self._texts.append(text)
        await self._writer.write_delta(text, trace)

    async def write_done(self, trace: RequestTrace) -> None:
        # Before this client reads the end: the others need not wait for a slow client.
        self._running.on_completed("".join(self._texts), trace)
        await self._writer.write_done(trace)

    async def write_error(self, error: CompletionError, trace: RequestTrace) -> None:
        await self._writer.write_error(error, trace)
