"""One client's stream: the completions in flight, their ends and their outcomes.

This module does not depend on Channels or the pipeline. Each completion is a task, so a `cancel`
frame never waits for a completion.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import Trigger
from caret.contracts.usage import (
    FinishReason,
    OutcomeEvent,
    OutcomeRecord,
    TypingRecord,
)
from caret.foundation.ids import new_request_id
from inference.completion.incoming_request import IncomingRequest, UnvalidatedRequest
from inference.completion.request_trace import RequestTrace
from inference.completion.suggestion_edit import SuggestionEdit
from inference.errors import CompletionError, TooManyRequests
from inference.gateway.protocol.connection_backend import ConnectionBackend, StreamCaller
from inference.gateway.protocol.drafts import to_draft, to_warmup_draft
from inference.gateway.protocol.frames import (
    FRAMES_WITHOUT_ID,
    CancelFrame,
    ClientFrame,
    CompleteFrame,
    DeltaFrame,
    DoneFrame,
    ErrorFrame,
    FileOpenedFrame,
    InvalidFrame,
    OutcomeFrame,
    PolicyFrame,
    PolicyQueryFrame,
    ServerFrame,
    TypingFrame,
    build_meta,
    build_policy_frame,
    decode_frame,
    to_edit_frame,
)
from inference.gateway.protocol.outcome_reports import (
    OutcomeReport,
    SuggestionRecord,
    count_outcome,
)
from inference.gateway.protocol.state_machine import CompletionEvent, CompletionState, advance
from inference.gateway.protocol.typing_reports import TypingReportLimiter
from inference.gateway.receive import MAX_NAME_CHARS
from inference.gateway.supersession.registry import can_supersede, supersession_group

MAX_CONCURRENT_COMPLETIONS: Final = 16  # on one connection; an editor has one or two
MAX_UNFINISHED: Final = 64  # completions, including cancelled ones that have not ended yet
MAX_REMEMBERED: Final = 256  # ended completions whose outcome may still be reported
# Accepted completions are remembered apart from the others, so that later requests do not displace
# them: editors report up to half an hour, or a thousand requests, later how much of a text is left.
MAX_ACCEPTED: Final = 128

Send = Callable[[ServerFrame], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SupersessionKey:
    """The properties that decide which completion supersedes another (see `supersession`)."""

    repository: str
    path: str
    group: str  # of the mode (see `supersession_group`)
    is_prefetch: bool

    def is_superseding(self, older: "SupersessionKey") -> bool:
        """Return whether a new completion with this key supersedes one with the key `older`."""
        is_same = self.path != "" and self._subject == older._subject
        return is_same and can_supersede(
            newer_is_prefetch=self.is_prefetch, older_is_prefetch=older.is_prefetch
        )

    @property
    def _subject(self) -> tuple[str, str, str]:
        return self.repository, self.path, self.group


_ACCEPTED: Final = (OutcomeEvent.ACCEPTED, OutcomeEvent.PARTIALLY_ACCEPTED)
_NO_SUPERSESSION_KEY: Final = SupersessionKey(repository="", path="", group="", is_prefetch=False)


@dataclass(slots=True)
class StreamedCompletion:
    """One completion of this connection; the ResponseWriter of its pipeline."""

    id: str  # chosen by the client
    supersession_key: SupersessionKey
    suggestion: SuggestionRecord
    send: Send
    include_prompt_segments: bool = False  # the client wants to know the prompt's composition
    state: CompletionState = CompletionState.UNKNOWN
    task: asyncio.Task[None] | None = None
    cancelled_s: float | None = None  # monotonic; None: not cancelled

    def advance(self, event: CompletionEvent) -> None:
        self.state = advance(self.state, event)

    def cancel(self, finish_reason: FinishReason, *, at_s: float) -> None:
        """End the completion, unless it was cancelled before or has ended.

        The client receives `finish_reason`. `at_s` is the current time (monotonic).
        """
        previous_state = self.state
        self.advance(CompletionEvent.CANCEL)
        if self.state is previous_state:
            return
        self.cancelled_s = at_s
        if self.task is not None:
            self.task.cancel(finish_reason.value)

    async def write_delta(self, text: str, _trace: RequestTrace) -> None:
        self.advance(CompletionEvent.DELTA)
        await self.send(DeltaFrame(id=self.id, text=text))
        self.suggestion.append_text(text)

    async def write_done(self, trace: RequestTrace) -> None:
        self.advance(CompletionEvent.DONE)
        trace.cancelled_s = self.cancelled_s
        finish_reason = trace.finish_reason or FinishReason.STOP
        meta = build_meta(trace, include_prompt_segments=self.include_prompt_segments)
        if trace.edit is not None:  # an edit is sent here, so no delta has counted it
            self.suggestion.num_chars = trace.num_sent_chars
            self.suggestion.num_lines = trace.num_sent_lines
        edit = to_edit_frame(trace.edit)
        await self.send(DoneFrame(id=self.id, finish_reason=finish_reason, meta=meta, edit=edit))

    async def write_error(self, error: CompletionError, trace: RequestTrace) -> None:
        self.advance(CompletionEvent.ERROR)
        await self.send(_build_error_frame(self.id, error))


class Connection:
    def __init__(self, backend: ConnectionBackend, caller: StreamCaller, send: Send) -> None:
        self._backend = backend
        self._caller = caller
        self._send = send
        # The completions by their ID:
        self._in_flight: dict[str, StreamedCompletion] = {}
        self._ended: OrderedDict[str, StreamedCompletion] = OrderedDict()
        self._accepted: OrderedDict[str, StreamedCompletion] = OrderedDict()
        self._typing_limiter = TypingReportLimiter(backend.clock)

    async def on_frame(self, text: str | None) -> None:
        """Handle a frame; None: a binary frame. Raises ClientDisconnected.

        An invalid frame is answered with an error frame.
        """
        try:
            if text is None:
                raise InvalidFrame("binary_frame", "Frames must be JSON text.")
            frame = decode_frame(text)
        except InvalidFrame as error:
            await self._send_error(error.id, error)
            return
        try:
            await self._dispatch_frame(frame)
        except CompletionError as error:
            await self._send_error(_id_of(frame), error)

    async def close(self, reason: CompletionError | None = None) -> None:
        """Cancel all completions in flight, and wait until they have ended.

        The client receives `reason` for each completion; None: the client has left.
        """
        tasks = self._list_tasks()
        for task in tasks:
            task.cancel(reason)  # None: a cancellation without a message
        await asyncio.gather(*tasks, return_exceptions=True)

    async def drain(self) -> None:
        """Wait until no completion is in flight. New requests are still served meanwhile."""
        while tasks := self._list_tasks():
            await asyncio.wait(tasks)

    async def _dispatch_frame(self, frame: ClientFrame) -> None:
        """Raises CompletionError."""
        match frame:
            case CompleteFrame():
                await self._on_complete(frame)
            case CancelFrame():
                self._on_cancel(frame)
            case FileOpenedFrame():
                self._on_file_opened(frame)
            case OutcomeFrame():
                self._on_outcome(frame)
            case TypingFrame():
                self._on_typing(frame)
            case PolicyQueryFrame():
                await self._send(self._build_policy_frame(frame.repository))

    def _build_policy_frame(self, repository: str) -> PolicyFrame:
        """Raises CompletionError."""
        principal = self._backend.find_principal()
        return build_policy_frame(principal, self._backend.find_modes(principal), repository)

    async def _send_error(self, identifier: str, error: CompletionError) -> None:
        await self._send(_build_error_frame(identifier, error))

    async def _on_complete(self, frame: CompleteFrame) -> None:
        previous = self._find_completion(frame.id)
        if previous is not None:
            # Raises InvalidFrame, because the ID is in use.
            advance(previous.state, CompletionEvent.COMPLETE)
        supersession_key = _build_supersession_key(frame)
        superseded = self._find_superseded(supersession_key)
        self._require_room(num_leaving=len(superseded))
        for completion in superseded:
            completion.cancel(FinishReason.SUPERSEDED, at_s=self._backend.clock.monotonic_s())
        arrival = self._make_incoming_request(to_draft(frame), trace_parent=frame.traceparent)
        suggestion = SuggestionRecord(arrival.request_id)
        completion = StreamedCompletion(
            frame.id,
            supersession_key,
            suggestion,
            self._send,
            include_prompt_segments=frame.include_prompt_segments,
        )
        completion.advance(CompletionEvent.COMPLETE)
        self._in_flight[frame.id] = completion
        completion.task = asyncio.create_task(self._run_completion(completion, arrival))
        # Let the task enter `record` before the next frame can cancel it: every request is
        # recorded.
        await asyncio.sleep(0)

    def _find_completion(self, identifier: str) -> StreamedCompletion | None:
        maps = (self._in_flight, self._ended, self._accepted)
        return next(
            (completions[identifier] for completions in maps if identifier in completions), None
        )

    def _find_superseded(self, key: SupersessionKey) -> list[StreamedCompletion]:
        """Return the completions that a new request for the same file supersedes."""
        return [
            completion
            for completion in self._list_running()
            if key.is_superseding(completion.supersession_key)
        ]

    def _list_tasks(self) -> list[asyncio.Task[None]]:
        return [completion.task for completion in self._in_flight.values() if completion.task]

    def _list_running(self) -> list[StreamedCompletion]:
        return [
            completion
            for completion in self._in_flight.values()
            if completion.state is not CompletionState.CANCELLING
        ]

    def _require_room(self, *, num_leaving: int) -> None:
        """Check the limits. Raises TooManyRequests.

        A cancelled completion remains in flight until a slow client has read its end.
        """
        num_running = len(self._list_running()) - num_leaving
        if num_running >= MAX_CONCURRENT_COMPLETIONS or len(self._in_flight) >= MAX_UNFINISHED:
            raise TooManyRequests(
                "too_many_requests", "Too many completions are in flight on this connection."
            )

    async def _run_completion(
        self, completion: StreamedCompletion, arrival: IncomingRequest
    ) -> None:
        try:
            await self._backend.serve(arrival, completion)
        finally:
            # A cancelled task keeps its stack frames, which contain customers' text. The names in
            # the supersession key are dropped, too: outcomes do not need them.
            completion.task = None
            completion.supersession_key = _NO_SUPERSESSION_KEY
            del self._in_flight[completion.id]
            self._ended[completion.id] = completion
            if len(self._ended) > MAX_REMEMBERED:
                self._ended.popitem(last=False)

    def _make_incoming_request(
        self, draft: UnvalidatedRequest, *, trace_parent: str | None = None
    ) -> IncomingRequest:
        return IncomingRequest(
            protocol="stream",
            key_text=self._caller.key_text,
            address=self._caller.address,
            draft=draft,
            received_s=self._backend.clock.monotonic_s(),
            occurred_at_ms=self._backend.clock.now_ms(),
            trace_parent=trace_parent,
            editor=self._caller.editor,
        )

    def _on_file_opened(self, frame: FileOpenedFrame) -> None:
        """Warm up the file if there is room. The client is not told about success or errors."""
        tenant_id = self._caller.principal.snapshot.tenant_id
        self._backend.warm_up(tenant_id, self._make_incoming_request(to_warmup_draft(frame)))

    def _on_cancel(self, frame: CancelFrame) -> None:
        completion = self._in_flight.get(frame.id)
        if completion is not None:
            completion.cancel(FinishReason.CANCELLED, at_s=self._backend.clock.monotonic_s())

    def _on_outcome(self, frame: OutcomeFrame) -> None:
        report = OutcomeReport(
            frame.event,
            chars=frame.chars,
            lines=frame.lines,
            after_ms=frame.after_ms,
            edited_ratio=frame.edited_ratio,
            display_ms=frame.display_ms,
        )
        completion = self._find_completion(frame.id)
        # After a reconnect, the ID may belong to another completion. The request ID is unique.
        known_request_id = completion.suggestion.request_id if completion else None
        if frame.request_id and frame.request_id != known_request_id:
            self._backend.record_late_outcome(
                self._backend.find_principal(), frame.request_id, report
            )
            return
        # Raises InvalidFrame, unless the completion has ended.
        advance(
            completion.state if completion else CompletionState.UNKNOWN, CompletionEvent.OUTCOME
        )
        assert completion is not None, "an outcome in state UNKNOWN was refused"
        counts = count_outcome(completion.suggestion, report)
        if frame.event in _ACCEPTED and frame.id in self._ended:
            self._accepted[frame.id] = self._ended.pop(frame.id)
            if len(self._accepted) > MAX_ACCEPTED:
                self._accepted.popitem(last=False)
        self._backend.append_record(
            OutcomeRecord(
                outcome_id=new_request_id(),
                request_id=completion.suggestion.request_id,
                tenant_id=self._caller.principal.snapshot.tenant_id,
                user_id=self._caller.principal.credential.user_id,
                occurred_at_ms=self._backend.clock.now_ms(),
                event=frame.event,
                after_ms=frame.after_ms,
                chars=counts.chars,
                lines=counts.lines,
                span_s=counts.span_s,
                edited_ratio=counts.edited_ratio,
                display_ms=frame.display_ms,
            )
        )
        if frame.text:
            request_id = completion.suggestion.request_id
            self._backend.on_edited(
                SuggestionEdit(request_id, frame.event, frame.after_ms, frame.text)
            )

    def _on_typing(self, frame: TypingFrame) -> None:
        for language, chars in self._typing_limiter.accept(frame.chars).items():
            self._backend.append_record(
                TypingRecord(
                    report_id=new_request_id(),
                    tenant_id=self._caller.principal.snapshot.tenant_id,
                    user_id=self._caller.principal.credential.user_id,
                    occurred_at_ms=self._backend.clock.now_ms(),
                    language=language,
                    editor=self._caller.editor,
                    chars=chars,
                )
            )


def _id_of(frame: ClientFrame) -> str:
    return "" if isinstance(frame, FRAMES_WITHOUT_ID) else frame.id


def _build_supersession_key(frame: CompleteFrame) -> SupersessionKey:
    repository, path = frame.repository.name, frame.path
    if max(len(repository), len(path)) > MAX_NAME_CHARS:
        # `receive` will reject the request. Its names need no memory until then.
        return _NO_SUPERSESSION_KEY
    return SupersessionKey(
        repository=repository,
        path=path,
        group=supersession_group(frame.mode),
        is_prefetch=frame.trigger == Trigger.PREFETCH,
    )


def _build_error_frame(identifier: str, error: CompletionError) -> ErrorFrame:
    return ErrorFrame(
        id=identifier,
        code=error.code,
        message=error.message,
        retry_after_s=error.retry_after_s,
    )
