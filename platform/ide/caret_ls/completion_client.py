"""Requests completions, at most one at a time for each file, and learns from the responses."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from caret_ls import frames
from caret_ls.clock import LoopClock
from caret_ls.completion_context import CompletionContext
from caret_ls.debounce import USUAL_RESPONSE_MS, Debouncer
from caret_ls.frames import Frame, RequestContext
from caret_ls.gateway_connection import RequestEnded
from caret_ls.in_flight_request import CompletionResult, InFlightRequest
from caret_ls.policy_cache import PolicyCache
from caret_ls.status_board import StatusBoard
from caret_ls.suggestion import Suggestion, create_suggestion
from caret_ls.suggestion_cache import SuggestionCache
from caret_ls.workspace import OpenFile

_COMPLETE_REASONS: Final = ("stop", "length")
_BUDGET_CODES: Final = ("budget_exceeded", "token_quota_exceeded")
# The gateway may name a longer wait, for example until the month ends. But a budget may be raised
# before, and the user should not have to restart the editor for that.
_MAX_BACKOFF_S: Final = 60.0
# No user waits longer for a suggestion; the gateway itself gives up after 30 s.
MAX_RESPONSE_S: Final = 20.0
# Between two updates of a growing suggestion. A token may arrive every 10 ms, but the editor need
# not draw the text a hundred times a second.
GROW_EVERY_S: Final = 0.05
_TOO_SLOW: Final = "deadline_exceeded"  # the gateway's error code
# Error codes after which the known policy may be out of date.
_POLICY_CODES: Final = ("path_excluded", "path_required", "feature_disabled", "insufficient_scope")


class GatewayApi(Protocol):
    def request(self, frame: Frame) -> AbstractAsyncContextManager[AsyncIterator[Frame]]:
        """Request a completion (see GatewayConnection)."""


@dataclass(frozen=True, slots=True)
class ResponseHandlers:
    """The components that learn from a response."""

    cache: SuggestionCache
    debouncer: Debouncer
    policies: PolicyCache
    board: StatusBoard
    clock: LoopClock


class CompletionClient:
    def __init__(
        self,
        gateway: GatewayApi,
        handlers: ResponseHandlers,
        *,
        build_request_context: Callable[[OpenFile], RequestContext],
        new_id: Callable[[], str],
        on_grown: Callable[[Suggestion], None] | None = None,
        max_response_s: float = MAX_RESPONSE_S,
    ) -> None:
        """`on_grown` gets an offered suggestion when more of its text has arrived, or all of it."""
        self._gateway = gateway
        self._handlers = handlers
        self._build_request_context = build_request_context
        self._new_id = new_id
        self._on_grown = on_grown
        self._max_response_s = max_response_s
        self._growing: dict[str, asyncio.Task[None]] = {}  # updates of suggestions, by file
        self._flights: dict[str, InFlightRequest] = {}  # requests in flight, by file
        self._backoff_until_s = 0.0
        self._unknown_languages: set[str] = set()  # no longer sent to the gateway

    @property
    def is_backing_off(self) -> bool:
        """True while no automatic request may be sent, because an earlier one was rejected."""
        return self._handlers.clock.monotonic_s() < self._backoff_until_s

    def select_language(self, language: str) -> str:
        """Return the language to send; "" if the gateway does not know it."""
        return "" if language in self._unknown_languages else language

    def mark_unknown_language(self, language: str) -> None:
        self._unknown_languages.add(language)

    def resume(self) -> None:
        """Forget the delay and the spent budget: they may not apply to the new connection."""
        self._backoff_until_s = 0.0
        self._handlers.board.set(is_over_budget=False)

    def join_or_cancel(self, context: CompletionContext) -> InFlightRequest | None:
        """Return the file's request if it matches the context. Cancel one that does not match.

        None: no request matches.
        """
        flight = self._flights.get(context.uri)
        if flight is not None and not flight.matches(context):
            self.cancel(context.uri)
            return None
        return flight

    def has_flight(self, uri: str) -> bool:
        """Return whether a request of the file is in flight."""
        flight = self._flights.get(uri)
        return flight is not None and not flight.is_over

    def start(
        self, file: OpenFile, context: CompletionContext, *, is_prefetch: bool
    ) -> InFlightRequest:
        """Start a request. It replaces the file's request in flight."""
        self.cancel(context.uri)
        flight = InFlightRequest(
            context, id=self._new_id(), is_prefetch=is_prefetch, send=partial(self._send, file)
        )
        self._flights[context.uri] = flight
        self._handlers.debouncer.on_request()
        return flight

    def cancel(self, uri: str) -> None:
        flight = self._flights.pop(uri, None)
        if flight is not None:
            flight.cancel()

    def offer_part(self, flight: InFlightRequest) -> None:
        """Put the text that has passed the gateway's filter into the cache, as a suggestion.

        The first call for a request also starts a task, which adds later text to the suggestion. A
        further call only adds the text that has arrived since.
        """
        was_offered = bool(flight.offered)
        if len(flight.passed_text) > len(flight.offered):
            self._store_passed(flight)
        if was_offered:
            return
        flight.offered_after_ms = self._measure_ms(flight)
        task = asyncio.create_task(self._grow(flight))
        self._growing[flight.context.uri] = task
        task.add_done_callback(lambda _: self._forget_growing(flight.context.uri, task))

    def cancel_growing(self, uri: str) -> None:
        """Cancel the file's request if its suggestion is still growing."""
        if uri in self._growing:
            self.cancel(uri)

    def _forget_growing(self, uri: str, task: asyncio.Task[None]) -> None:
        if self._growing.get(uri) is task:
            del self._growing[uri]

    async def _grow(self, flight: InFlightRequest) -> None:
        """Update an offered suggestion until its request is over."""
        with flight.keep_running():
            while await flight.wait_passed(len(flight.offered)):
                self._notify_grown(self._store_passed(flight))
                await asyncio.sleep(GROW_EVERY_S)
        result = await flight.wait_result()
        if result is None:  # cancelled, because the suggestion is no longer visible
            self._handlers.cache.discard(flight.id)
            return
        self._notify_grown(_whole_suggestion(flight, result))

    def _store_passed(self, flight: InFlightRequest) -> Suggestion:
        flight.offered = flight.passed_text
        suggestion = create_suggestion(flight.context, flight.offered, id=flight.id, is_whole=False)
        self._handlers.cache.store(suggestion)
        return suggestion

    def _notify_grown(self, suggestion: Suggestion) -> None:
        if self._on_grown is not None:
            self._on_grown(suggestion)

    def _measure_ms(self, flight: InFlightRequest) -> float | None:
        """Return the milliseconds since the request was sent; None: it was not sent yet."""
        if flight.sent_s is None:
            return None
        return (self._handlers.clock.monotonic_s() - flight.sent_s) * 1000

    async def _send(self, file: OpenFile, flight: InFlightRequest) -> CompletionResult:
        if flight.is_prefetch:
            return await self._receive(file, flight)
        self._handlers.board.on_request_started()
        try:
            return await self._receive(file, flight)
        finally:
            self._handlers.board.on_request_ended()

    async def _receive(self, file: OpenFile, flight: InFlightRequest) -> CompletionResult:
        """Send the request, and return its result. An error's code is the finish reason."""
        clock = self._handlers.clock
        began_s, retry_after_s = clock.monotonic_s(), None
        flight.sent_s = began_s
        try:
            async with asyncio.timeout(self._max_response_s):
                finish_reason = await self._read_frames(file, flight)
        except TimeoutError:
            finish_reason = _TOO_SLOW
        except RequestEnded as error:
            finish_reason, retry_after_s = error.code, error.retry_after_s
        except asyncio.CancelledError:
            self._record_cancelled(flight, began_s)
            raise
        took_ms = (clock.monotonic_s() - began_s) * 1000
        result = CompletionResult(finish_reason, flight.text, took_ms, retry_after_s)
        self._record_result(flight, result)
        return result

    async def _read_frames(self, file: OpenFile, flight: InFlightRequest) -> str:
        """Send the request, read the response and return its finish reason. Raises RequestEnded."""
        language = self.select_language(flight.context.language)
        context = replace(flight.context, language=language)
        frame = frames.build_complete(
            flight.id, context, self._build_request_context(file), trigger=_trigger_of(flight)
        )
        async with self._gateway.request(frame) as frames_of_request:
            async for received_frame in frames_of_request:
                if received_frame["type"] == "done":
                    flight.request_id = _request_id(received_frame)
                    return str(received_frame.get("finish_reason"))
                flight.append(str(received_frame.get("text", "")))
        raise RequestEnded("offline")

    def _record_cancelled(self, flight: InFlightRequest, began_s: float) -> None:
        """Learn from a cancelled request: its response would have taken at least this long.

        If the suggestion was growing, the time to its first line is known.
        """
        if flight.is_prefetch:
            return
        if flight.offered_after_ms is not None:
            self._handlers.debouncer.on_response(flight.offered_after_ms)
            return
        waited_ms = (self._handlers.clock.monotonic_s() - began_s) * 1000
        if waited_ms > USUAL_RESPONSE_MS:
            self._handlers.debouncer.on_response(waited_ms)

    def _record_result(self, flight: InFlightRequest, result: CompletionResult) -> None:
        if result.finish_reason in (*_COMPLETE_REASONS, "filtered") or flight.offered:
            # Stored even without text, so that the same context is not requested again.
            self._handlers.cache.store(_whole_suggestion(flight, result))
        if (
            result.finish_reason in (*_COMPLETE_REASONS, "filtered", _TOO_SLOW)
            and not flight.is_prefetch
        ):
            # For a growing suggestion, the time to its first line: the user waits only for that.
            first_ms = flight.offered_after_ms
            self._handlers.debouncer.on_response(result.took_ms if first_ms is None else first_ms)
        if result.finish_reason == "unknown_language":
            self.mark_unknown_language(flight.context.language)
        if result.finish_reason == "no_pool":
            self._handlers.policies.mark_unserved(flight.context.mode)
        if result.finish_reason in _POLICY_CODES:
            self._handlers.policies.invalidate()
        self.back_off(result.finish_reason, result.retry_after_s)

    def back_off(self, finish_reason: str, retry_after_s: float | None) -> None:
        """Delay automatic requests if the gateway named a wait, or a budget is used up.

        Also update the status of the budget.
        """
        is_over_budget = finish_reason in _BUDGET_CODES
        if is_over_budget or finish_reason in (*_COMPLETE_REASONS, "filtered"):
            self._handlers.board.set(is_over_budget=is_over_budget)
        backoff_s = retry_after_s or (_MAX_BACKOFF_S if is_over_budget else 0.0)
        if backoff_s:
            now_s = self._handlers.clock.monotonic_s()
            self._backoff_until_s = now_s + min(backoff_s, _MAX_BACKOFF_S)


def _whole_suggestion(flight: InFlightRequest, result: CompletionResult) -> Suggestion:
    """Return the suggestion of a finished request.

    If the request failed, or its text is blank, the suggestion has the text that was offered, which
    may be empty.
    """
    text = (
        result.text
        if result.finish_reason in _COMPLETE_REASONS and result.text.strip()
        else flight.offered
    )
    return create_suggestion(
        flight.context, text.rstrip(), id=flight.id, request_id=flight.request_id
    )


def _request_id(done: Frame) -> str:
    meta = done.get("meta")
    return str(meta.get("request_id", "")) if isinstance(meta, dict) else ""


def _trigger_of(flight: InFlightRequest) -> str:
    if flight.is_prefetch:
        return "prefetch"
    return "manual" if flight.context.is_invoked else "automatic"
