"""A suggestion provider with an open file, a clock and a gateway that a test controls."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from caret_ls.completion_client import MAX_RESPONSE_S, CompletionClient, ResponseHandlers
from caret_ls.completion_provider import (
    CompletionProvider,
    InlineItem,
    InlineRequest,
    ProviderState,
)
from caret_ls.debounce import MAX_ALLOWANCE, Debouncer
from caret_ls.frames import Frame, RequestContext
from caret_ls.gateway_connection import RequestEnded
from caret_ls.outcome_tracker import EditorOutcome, EditorOutcomeEvent, OutcomeTracker
from caret_ls.policy_cache import PolicyCache
from caret_ls.settings import Settings
from caret_ls.status_board import ServerStatus, StatusBoard
from caret_ls.suggestion import Suggestion
from caret_ls.suggestion_cache import SuggestionCache
from caret_ls.text_document import Position, utf16_length
from caret_ls.workspace import OpenFiles, SelectedCompletion
from tests.fakes.polling import wait_until

URI = "file:///nowhere/a.py"


class ManualClock:
    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.slept_s = 0.0  # while the machine sleeps, only the wall clock advances

    def wall_s(self) -> float:
        return 1_750_000_000.0 + self.now_s + self.slept_s

    def monotonic_s(self) -> float:
        return self.now_s


@dataclass
class FakeGateway:
    """Stands in for the connection to the gateway. Requests wait for responses from the test."""

    requests: list[Frame] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    responses: dict[str, asyncio.Queue[Frame | RequestEnded]] = field(default_factory=dict)
    # The responses to the next requests: one list for each request.
    ready: list[list[Frame | RequestEnded]] = field(default_factory=list)

    @asynccontextmanager
    async def request(self, frame: Frame) -> AsyncIterator[AsyncIterator[Frame]]:
        self.requests.append(frame)
        queue = self.responses.setdefault(frame["id"], asyncio.Queue())
        for response in self.ready.pop(0) if self.ready else []:
            queue.put_nowait(response)
        is_over = False

        async def read_frames() -> AsyncIterator[Frame]:
            nonlocal is_over
            while True:
                response = await queue.get()
                is_over = isinstance(response, RequestEnded) or response["type"] == "done"
                if isinstance(response, RequestEnded):
                    raise response
                yield response

        try:
            yield read_frames()
        finally:
            if not is_over:
                self.cancelled.append(frame["id"])

    def respond(self, id: str, *texts: str, finish_reason: str | None = "stop") -> None:
        """Send texts and a finish reason; None: more texts may follow."""
        for response in response_frames(*texts, finish_reason=finish_reason):
            self.responses[id].put_nowait(response)


def response_frames(*texts: str, finish_reason: str | None = "stop") -> list[Frame | RequestEnded]:
    deltas: list[Frame | RequestEnded] = [{"type": "delta", "text": text} for text in texts]
    return (
        deltas
        if finish_reason is None
        else [*deltas, {"type": "done", "finish_reason": finish_reason}]
    )


class Harness:
    """A provider with its real parts, and one file, `URI`, in which the cursor is at `|`."""

    def __init__(self, *, max_response_s: float = MAX_RESPONSE_S, **settings: Any) -> None:
        self.clock = ManualClock()
        self.gateway = FakeGateway()
        self.statuses: list[ServerStatus] = []
        self.grown: list[Suggestion] = []
        self.reported: list[EditorOutcome] = []
        self.board = StatusBoard(self.statuses.append)
        self.board.set(is_connected=True)
        self.debouncer, self.cache = Debouncer(), SuggestionCache()
        self.policies = PolicyCache(lambda _: True)
        self.files = OpenFiles(lambda _: None)
        self.outcomes = OutcomeTracker(self.reported.append)
        numbers = count(1)
        self.client = CompletionClient(
            self.gateway,
            ResponseHandlers(self.cache, self.debouncer, self.policies, self.board, self.clock),
            build_request_context=lambda _: RequestContext(),
            new_id=lambda: str(next(numbers)),
            on_grown=self._on_grown,
            max_response_s=max_response_s,
        )
        state = ProviderState(
            self.files,
            self.cache,
            self.debouncer,
            self.outcomes,
            self.policies,
            self.board,
            self.clock,
        )
        # Prefetches would be additional requests, which most tests do not expect.
        values = {"prefetch": False} | settings
        self.completions = CompletionProvider(state, self.client, Settings(**values))
        self.at = Position(0, 0)  # the cursor

    def _on_grown(self, suggestion: Suggestion) -> None:
        self.grown.append(suggestion)
        self.outcomes.grow(
            suggestion.id,
            suggestion.text,
            is_whole=suggestion.is_whole,
            request_id=suggestion.request_id,
            now_s=self.clock.now_s,
        )

    def open(self, text: str, *, language: str = "python", uri: str = URI) -> None:
        prefix, _, suffix = text.partition("|")
        self.files.open(uri, language, prefix + suffix)
        self.at = _position(prefix)

    def type(self, text: str) -> None:
        """Type at the cursor, with 300 ms between keys."""
        file = self.files.get(URI)
        assert file is not None
        for character in text:
            self.clock.now_s += 0.3
            edit = file.change(self.at, self.at, character)
            event = self.outcomes.change(URI, edit, self.clock.now_s)
            if event is EditorOutcomeEvent.REJECTED:
                self.completions.on_rejected(URI)
            self.at = _after(self.at, character)

    def spend_allowance(self) -> None:
        """Use up the allowance of requests without a delay, as after many requests."""
        for _ in range(int(MAX_ALLOWANCE)):
            self.debouncer.on_request()

    def request_suggestion(
        self, *, is_invoked: bool = False, selected_completion: SelectedCompletion | None = None
    ) -> "asyncio.Task[InlineItem | None]":
        request = InlineRequest(self.at, is_invoked, selected_completion)
        return asyncio.create_task(self.completions.provide(URI, request))

    async def wait_for_request(self, number: int) -> Frame:
        """Return the gateway's `number`-th request, once it has arrived."""
        await wait_until(lambda: len(self.gateway.requests) >= number)
        return self.gateway.requests[number - 1]


def _after(at: Position, character: str) -> Position:
    if character == "\n":
        return Position(at.line + 1, 0)
    return Position(at.line, at.units + utf16_length(character))


def _position(prefix: str) -> Position:
    return Position(prefix.count("\n"), utf16_length(prefix.rpartition("\n")[2]))
