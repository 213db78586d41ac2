"""Provides a suggestion for a keystroke, or the reason why there is none.

1. Check whether a rule forbids a request or makes it useless (`skip_rules`).
2. Look for a suggestion that contains what the user has typed (`suggestion_cache`).
3. Wait for a pause in typing (`debounce`).
4. Request a completion, and return its text as a suggestion.

At most one request per file is in flight. A newer keystroke joins it if it matches, and otherwise
cancels it.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Final

from caret_ls.clock import LoopClock
from caret_ls.completion_client import CompletionClient
from caret_ls.completion_context import CompletionContext
from caret_ls.debounce import Debouncer
from caret_ls.in_flight_request import CompletionResult, InFlightRequest
from caret_ls.mode_choice import CompletionMode, apply_mode, find_lead
from caret_ls.outcome_tracker import OutcomeTracker, ShownSuggestion
from caret_ls.policy_cache import PolicyCache
from caret_ls.settings import Settings
from caret_ls.skip_rules import MODE_OFF_REASONS, SkipReason, SkipRules, find_skip_reason
from caret_ls.status_board import StatusBoard
from caret_ls.suggestion import RemainingSuggestion
from caret_ls.suggestion_cache import SuggestionCache
from caret_ls.text_document import Position
from caret_ls.workspace import OpenFile, OpenFiles, SelectedCompletion

# How long a suggestion must be visible before its continuation is prefetched, unless requests may
# be sent at once (`Debouncer.is_eager`).
PREFETCH_AFTER_S: Final = 0.4
# Number of requests that a prefetch must leave in the debouncer's allowance, for the next keys.
_RESERVE: Final = 1.0
# These reasons do not hide a cached suggestion while the user types its text, which may contain a
# string, a comment or the end of a statement.
_IGNORED_WHILE_TYPED: Final = (
    SkipReason.IN_STRING,
    SkipReason.IN_COMMENT,
    SkipReason.STATEMENT_ENDED,
)
_MAX_TRIES: Final = 2  # a joined request may end with a text that does not match
# Error codes of the gateway if the policy or the API key does not allow the mode.
MODE_OFF_CODES: Final = ("feature_disabled", "insufficient_scope")
REASONS: Final = {  # by the gateway's finish reason or error code
    "shed": SkipReason.OVERLOADED,
    "budget_exceeded": SkipReason.OVER_BUDGET,
    "token_quota_exceeded": SkipReason.OVER_BUDGET,
    "path_excluded": SkipReason.EXCLUDED,
    "path_required": SkipReason.EXCLUDED,
    "no_pool": SkipReason.NO_MODEL,
    "model_not_allowed": SkipReason.NO_MODEL,
    "offline": SkipReason.OFFLINE,
    "superseded": SkipReason.NEWER_KEYSTROKE,
    "cancelled": SkipReason.NEWER_KEYSTROKE,
    "rate_limited": SkipReason.OVERLOADED,
    "too_many_requests": SkipReason.OVERLOADED,
    "deadline_exceeded": SkipReason.OVERLOADED,
}


@dataclass(frozen=True, slots=True)
class InlineRequest:
    position: Position
    is_invoked: bool = False  # the user pressed a key to get a suggestion
    selected: SelectedCompletion | None = None  # None: no item of a completion list is selected


@dataclass(frozen=True, slots=True)
class InlineItem:
    """A suggestion as the editor gets it: `text` is inserted at `position`."""

    id: str  # of the request on the connection
    text: str
    position: Position
    replaces: int  # number of characters after the position that the text replaces
    mode: str = "inline"


@dataclass(frozen=True, slots=True)
class ProviderState:
    """The state that suggestions depend on."""

    files: OpenFiles
    cache: SuggestionCache
    debouncer: Debouncer
    outcomes: OutcomeTracker
    policies: PolicyCache
    board: StatusBoard
    clock: LoopClock


@dataclass(frozen=True, slots=True)
class _Prefetch:
    suggestion_id: str  # of the suggestion that is visible
    task: asyncio.Task[None]


class CompletionProvider:
    def __init__(self, state: ProviderState, client: CompletionClient, settings: Settings) -> None:
        self._state = state
        self._client = client
        self.settings = settings
        self.can_grow = False  # whether the editor requests a suggestion again when it has grown
        # Why the newest request of the editor got no suggestion; None: it got one.
        self.last_reason: SkipReason | None = SkipReason.NOT_REQUESTED
        self._num_calls = 0  # calls of `provide`
        # The newest task of each file.
        self._tasks: dict[str, asyncio.Task[RemainingSuggestion | SkipReason]] = {}
        self._prefetches: dict[str, _Prefetch] = {}  # the newest of each file
        # By file, for its next invoked request.
        self._requested_modes: dict[str, CompletionMode] = {}

    async def provide(self, uri: str, inline_request: InlineRequest) -> InlineItem | None:
        """Return a suggestion; if there is none, return None and set `last_reason`.

        Cancelling this call also cancels the request at the gateway, unless a newer keystroke joins
        this request in time (`in_flight_request.GRACE_S`).
        """
        self._num_calls += 1
        number = self._num_calls
        self.last_reason = SkipReason.NEWER_KEYSTROKE  # in case this call is cancelled
        result = await self._provide(uri, inline_request)
        if number == self._num_calls:  # otherwise keep a newer call's reason
            self.last_reason = result if isinstance(result, SkipReason) else None
        return None if isinstance(result, SkipReason) else result

    async def _provide(self, uri: str, inline_request: InlineRequest) -> InlineItem | SkipReason:
        file = self._state.files.get(uri)
        if file is None:
            return SkipReason.FILE_CLOSED
        lead: str | None = ""  # see `_build_context`
        if inline_request.selected is not None:
            lead = file.untyped_rest(inline_request.position, inline_request.selected)
        if lead is None:  # no suggestion can continue the selected list item
            return SkipReason.COMPLETION_LIST_OPEN
        context, lead = self._build_context(file, inline_request, lead)
        revision = file.revision
        remaining = await self._run_newest_task(file, context)
        if file.revision != revision:
            return SkipReason.NEWER_KEYSTROKE
        if isinstance(remaining, SkipReason):
            self._cancel_prefetch(uri)
            return remaining
        if remaining.suggestion.is_whole:
            self._prefetch_soon(file, context, remaining)
        item = self._make_item(file, inline_request.position, lead, remaining)
        return replace(item, mode=context.mode)

    def request_mode(self, uri: str, mode: CompletionMode) -> None:
        """Use this mode for the file's next request that the user invokes."""
        self._requested_modes[uri] = mode

    def _build_context(
        self, file: OpenFile, inline_request: InlineRequest, lead: str
    ) -> tuple[CompletionContext, str]:
        """Return the context with its mode, and the whole lead.

        The lead is the text that the context has before the cursor, although it is not in the file:
        the rest of the selected list item, and the marks that open a requested docstring.
        """
        position, is_invoked = inline_request.position, inline_request.is_invoked
        mode = self._requested_modes.pop(file.uri, None) if is_invoked else None
        context = file.context_at(position, is_invoked=is_invoked, lead=lead)
        if marks := find_lead(context, mode):
            lead += marks
            context = file.context_at(position, is_invoked=is_invoked, lead=lead)
        now_s = self._state.clock.monotonic_s()
        allowed = self._state.policies.automatic_modes(file.repository_name, now_s)
        return apply_mode(context, requested=mode, allowed=allowed), lead

    def on_rejected(self, uri: str) -> None:
        """Stop the file's growing suggestion and prefetch, because the suggestion is hidden now."""
        self._client.cancel_growing(uri)
        self._cancel_prefetch(uri)

    def cancel(self, uri: str) -> None:
        """Cancel everything for a closed file."""
        task = self._tasks.pop(uri, None)
        if task is not None:
            task.cancel()
        self._cancel_prefetch(uri)
        self._client.cancel(uri)

    async def _run_newest_task(
        self, file: OpenFile, context: CompletionContext
    ) -> RemainingSuggestion | SkipReason:
        """Find a suggestion in a new task, and cancel the task of the file's previous keystroke."""
        older = self._tasks.pop(file.uri, None)
        if older is not None:
            older.cancel()
        task = asyncio.create_task(self._find_suggestion(file, context))
        self._tasks[file.uri] = task
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()  # has an effect only if this call was cancelled
            if self._tasks.get(file.uri) is task:
                del self._tasks[file.uri]
        return SkipReason.NEWER_KEYSTROKE if task.cancelled() else task.result()

    async def _find_suggestion(
        self, file: OpenFile, context: CompletionContext
    ) -> RemainingSuggestion | SkipReason:
        reason = find_skip_reason(
            context, self._build_rules(file), kind=file.kind, has_selection=file.has_selection
        )
        cached = None if context.is_mode_requested else self._find_cached(context)
        if (
            reason in _IGNORED_WHILE_TYPED
            and isinstance(cached, RemainingSuggestion)
            and cached.is_typed_into
        ):
            return cached
        if reason is not None:
            self._client.cancel(file.uri)
            return reason
        return cached if cached is not None else await self._request_suggestion(file, context)

    def _find_cached(self, context: CompletionContext) -> RemainingSuggestion | SkipReason | None:
        """Return a cached suggestion; NOTHING_TO_SUGGEST if it is empty, None if there is none."""
        cached = self._state.cache.find(context)
        if cached is None:
            return None
        return cached if cached.text else SkipReason.NOTHING_TO_SUGGEST

    async def _request_suggestion(
        self, file: OpenFile, context: CompletionContext
    ) -> RemainingSuggestion | SkipReason:
        for _ in range(_MAX_TRIES):
            flight = self._client.join_or_cancel(context)
            if flight is None:
                reason = self._find_wait_reason(context)
                if reason is not None:
                    return reason
                await asyncio.sleep(self._compute_pause_s(context))
                flight = self._client.start(file, context, is_prefetch=False)
            reason = await self._wait_for_text(flight, context)
            if reason is not None:
                return reason
            cached = self._find_cached(context)
            # The user did not wait for a prefetch from its start, so `sent_s` stays None for it.
            if isinstance(cached, RemainingSuggestion) and not flight.is_prefetch:
                return replace(cached, sent_s=flight.sent_s)
            if cached is not None:
                return cached
        return SkipReason.NEWER_KEYSTROKE

    async def _wait_for_text(
        self, flight: InFlightRequest, context: CompletionContext
    ) -> SkipReason | None:
        """Wait for a suggestion, or only for its first line if the editor can show a growing one.

        Return None, or why there is no suggestion.
        """
        num_typed = len(context.prefix) - len(flight.context.prefix)
        if self.can_grow and await flight.wait_passed(num_typed):
            self._client.offer_part(flight)
            return None
        result = await flight.wait_result()
        # Offered text remains a suggestion, even if the request failed later.
        return None if flight.offered else _reason_of(result, context)

    def _find_wait_reason(self, context: CompletionContext) -> SkipReason | None:
        """Return why no request may be sent now, or None. Invoked requests ignore the backoff."""
        board = self._state.board
        if board.signed_out_reason is not None:
            return SkipReason.SIGNED_OUT
        if not board.is_connected:
            return SkipReason.OFFLINE
        if context.is_invoked or not self._client.is_backing_off:
            return None
        return SkipReason.OVER_BUDGET if board.is_over_budget else SkipReason.OVERLOADED

    def _compute_pause_s(self, context: CompletionContext) -> float:
        return self._state.debouncer.delay_s(
            self._state.clock.monotonic_s(),
            is_invoked=context.is_invoked,
            is_fresh_line=not context.line_before.strip(),
        )

    def _build_rules(self, file: OpenFile) -> SkipRules:
        now_s = self._state.clock.monotonic_s()
        policy = self._state.policies.get(file.repository_name, now_s)
        return SkipRules(
            is_paused=self._state.board.is_paused,
            disabled_languages=frozenset(self.settings.disabled_languages),
            excluded=(*policy.excluded_globs, *self.settings.excluded_globs),
            complete_in_comments=self.settings.complete_in_comments,
            complete_in_strings=self.settings.complete_in_strings,
            modes=policy.modes,
        )

    def _make_item(
        self, file: OpenFile, position: Position, lead: str, remaining: RemainingSuggestion
    ) -> InlineItem:
        """Return the item for the editor, and track it as shown."""
        text = lead + remaining.text
        self._state.outcomes.show(
            file.uri,
            ShownSuggestion(
                remaining.suggestion.id,
                file.buffer.to_offset(position),
                text,
                num_lead_chars=len(lead),
                request_id=remaining.suggestion.request_id,
                is_whole=remaining.suggestion.is_whole,
                num_before=len(remaining.suggestion.text) - len(remaining.text),
                sent_s=remaining.sent_s,
            ),
            now_s=self._state.clock.monotonic_s(),
        )
        return InlineItem(remaining.suggestion.id, text, position, remaining.replaces)

    def _prefetch_soon(
        self, file: OpenFile, context: CompletionContext, remaining: RemainingSuggestion
    ) -> None:
        """Start a task that prefetches the text after the suggestion.

        The task continues while the user types the suggestion's text.
        """
        id = remaining.suggestion.id
        older = self._prefetches.get(file.uri)
        is_running = older is not None and older.suggestion_id == id and not older.task.done()
        if is_running or not self.settings.prefetch:
            return
        self._cancel_prefetch(file.uri)
        task = asyncio.create_task(self._prefetch(file, context, remaining))
        self._prefetches[file.uri] = _Prefetch(id, task)

    def _cancel_prefetch(self, uri: str) -> None:
        prefetch = self._prefetches.pop(uri, None)
        if prefetch is not None:
            prefetch.task.cancel()

    async def _prefetch(
        self, file: OpenFile, context: CompletionContext, remaining: RemainingSuggestion
    ) -> None:
        """Prefetch the completion after the suggestion. If it is empty, prefetch the next line's.

        Wait first if no request may be sent at once. The next line's completion is requested only
        if a request may be sent at once; otherwise the next key tries again. A prefetch has the
        lowest priority: a busy pool rejects it first.
        """
        if not self._state.debouncer.is_eager(reserve=_RESERVE):
            await asyncio.sleep(PREFETCH_AFTER_S)
        context_after = CompletionContext(
            uri=context.uri,
            path=context.path,
            language=context.language,
            prefix=context.prefix + remaining.text,
            suffix=context.suffix[remaining.replaces :],
        )
        has_text = await self._prefetch_at(file, context_after)
        if not has_text and self._state.debouncer.is_eager(reserve=_RESERVE):
            await self._prefetch_at(file, _start_next_line(context_after))

    async def _prefetch_at(self, file: OpenFile, context: CompletionContext) -> bool:
        """Request a completion unless one is cached; return whether text is cached now."""
        cached = self._state.cache.find(context)
        if cached is None and self._is_idle(context):
            await self._client.start(file, context, is_prefetch=True).wait_result()
            cached = self._state.cache.find(context)
        return cached is not None and bool(cached.text)

    def _is_idle(self, context: CompletionContext) -> bool:
        return self._find_wait_reason(context) is None and not self._client.has_flight(context.uri)


def _start_next_line(context: CompletionContext) -> CompletionContext:
    """Return the context after a line break, with the indentation that editors add."""
    line = context.line_before
    indent = line[: len(line) - len(line.lstrip())]
    return replace(context, prefix=f"{context.prefix}\n{indent}")


def _reason_of(result: CompletionResult | None, context: CompletionContext) -> SkipReason | None:
    """Return why there is no suggestion; None if the request completed, with or without text."""
    if result is None:
        return SkipReason.NEWER_KEYSTROKE
    if result.finish_reason in ("stop", "length", "filtered"):
        return None
    if result.finish_reason in MODE_OFF_CODES:
        return MODE_OFF_REASONS[CompletionMode(context.mode)]
    return REASONS.get(result.finish_reason, SkipReason.REFUSED)
