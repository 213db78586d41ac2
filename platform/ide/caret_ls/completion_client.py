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
from caret_ls.debounce import USUAL_ANSWER_MS, Debouncer
from caret_ls.frames import Frame, RequestContext
from caret_ls.gateway_connection import RequestEnded
from caret_ls.in_flight_request import CompletionResult, InFlightRequest
from caret_ls.policy_cache import PolicyCache
from caret_ls.status_board import StatusBoard
from caret_ls.suggestion import Suggestion, create_suggestion
from caret_ls.suggestion_cache import SuggestionCache
from caret_ls.workspace import OpenFile

_WHOLE: Final = ("stop", "length")
_BUDGET: Final = ("budget_exceeded", "token_quota_exceeded")
# A budget may be raised even before the time that the gateway named. The user should not have to
# restart the editor then.
_MAX_HOLD_S: Final = 60.0
# Nobody waits this long; the gateway itself gives up after 30 s.
MAX_ANSWER_S: Final = 20.0
_TOO_SLOW: Final = "deadline_exceeded"  # the gateway's error code
_POLICY: Final = ("path_excluded", "path_required", "feature_disabled")


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
        learning: ResponseHandlers,
        *,
        around: Callable[[OpenFile], RequestContext],
        new_id: Callable[[], str],
        on_grown: Callable[[Suggestion], None] | None = None,
        max_answer_s: float = MAX_ANSWER_S,
    ) -> None:
        """`on_grown` is called when a suggestion that was offered has more text or is whole."""
        self._gateway = gateway
        self._learns = learning
        self._around = around
        self._new_id = new_id
        self._on_grown = on_grown
        self._max_answer_s = max_answer_s
        self._growing: dict[str, asyncio.Task[None]] = {}  # by file
        self._flights: dict[str, InFlightRequest] = {}  # by file
        self._held_until_s = 0.0
        self._unknown_languages: set[str] = set()  # by the gateway; they are no longer sent

    @property
    def is_backing_off(self) -> bool:
        """True while the gateway's delay for retries has not passed."""
        return self._learns.clock.monotonic_s() < self._held_until_s

    def resume(self) -> None:
        """Forget the hold, because the gateway or the key has changed."""
        self._held_until_s = 0.0
        self._learns.board.set(is_over_budget=False)

    def get_or_start(self, place: CompletionContext) -> InFlightRequest | None:
        """Return a request to join; cancel one that does not match the context."""
        flight = self._flights.get(place.uri)
        if flight is not None and not flight.matches(place):
            self.cancel(place.uri)
            return None
        return flight

    def start(
        self, file: OpenFile, place: CompletionContext, *, is_prefetch: bool
    ) -> InFlightRequest:
        self.cancel(place.uri)
        flight = InFlightRequest(
            place, id=self._new_id(), is_prefetch=is_prefetch, ask=partial(self._send, file)
        )
        self._flights[place.uri] = flight
        return flight

    def cancel(self, uri: str) -> None:
        flight = self._flights.pop(uri, None)
        if flight is not None:
            flight.cancel()

    def offer_part(self, flight: InFlightRequest) -> None:
        """Make the text that has passed a suggestion, and let it grow with the request."""
        is_growing = bool(flight.offered)
        if len(flight.passed_text) > len(flight.offered):
            self._store_passed(flight)
        if is_growing:
            return
        task = asyncio.create_task(self._grow(flight))
        self._growing[flight.place.uri] = task
        task.add_done_callback(lambda _: self._forget_growing(flight.place.uri, task))

    def cancel_growing(self, uri: str) -> None:
        if uri in self._growing:
            self.cancel(uri)

    def _forget_growing(self, uri: str, task: asyncio.Task[None]) -> None:
        if self._growing.get(uri) is task:
            del self._growing[uri]

    async def _grow(self, flight: InFlightRequest) -> None:
        while await flight.wait_passed(len(flight.offered)):
            self._tell_grown(self._store_passed(flight))
        result = await flight.wait_result()
        if result is None:  # typed against: nobody sees it
            self._learns.cache.discard(flight.id)
            return
        self._tell_grown(_whole_suggestion(flight, result))

    def _store_passed(self, flight: InFlightRequest) -> Suggestion:
        flight.offered = flight.passed_text
        suggestion = create_suggestion(flight.place, flight.offered, id=flight.id, is_whole=False)
        self._learns.cache.store(suggestion)
        return suggestion

    def _tell_grown(self, suggestion: Suggestion) -> None:
        if self._on_grown is not None:
            self._on_grown(suggestion)

    async def _send(self, file: OpenFile, flight: InFlightRequest) -> CompletionResult:
        if flight.is_prefetch:
            return await self._receive(file, flight)
        self._learns.board.on_request_started()
        try:
            return await self._receive(file, flight)
        finally:
            self._learns.board.on_request_ended()

    async def _receive(self, file: OpenFile, flight: InFlightRequest) -> CompletionResult:
        clock = self._learns.clock
        began_s, retry_after_s = clock.monotonic_s(), None
        try:
            async with asyncio.timeout(self._max_answer_s):
                finish_reason = await self._read_frames(file, flight)
        except TimeoutError:
            finish_reason = _TOO_SLOW
        except RequestEnded as error:
            finish_reason, retry_after_s = error.code, error.retry_after_s
        except asyncio.CancelledError:
            self._record_slow_answer(flight, began_s)
            raise
        took_ms = (clock.monotonic_s() - began_s) * 1000
        landing = CompletionResult(finish_reason, flight.text, took_ms, retry_after_s)
        self._record_result(flight, landing)
        return landing

    async def _read_frames(self, file: OpenFile, flight: InFlightRequest) -> str:
        """Read the response and return its finish reason.

        Raises RequestEnded.
        """
        language = flight.place.language
        supported_language = "" if language in self._unknown_languages else language
        place = replace(flight.place, language=supported_language)
        frame = frames.complete(flight.id, place, self._around(file), trigger=_trigger_of(flight))
        async with self._gateway.request(frame) as answers:
            async for answer in answers:
                if answer["type"] == "done":
                    flight.request_id = _request_id(answer)
                    return str(answer.get("finish_reason"))
                flight.append(str(answer.get("text", "")))
        raise RequestEnded("offline")

    def _record_slow_answer(self, flight: InFlightRequest, began_s: float) -> None:
        """Learn from a cancelled request: its response would have taken at least this long."""
        waited_ms = (self._learns.clock.monotonic_s() - began_s) * 1000
        if not flight.is_prefetch and waited_ms > USUAL_ANSWER_MS:
            self._learns.debouncer.on_answer(waited_ms)

    def _record_result(self, flight: InFlightRequest, landing: CompletionResult) -> None:
        if landing.finish_reason in (*_WHOLE, "filtered") or flight.offered:
            self._learns.cache.store(_whole_suggestion(flight, landing))
        if landing.finish_reason in (*_WHOLE, "filtered", _TOO_SLOW) and not flight.is_prefetch:
            self._learns.debouncer.on_answer(landing.took_ms)
        if landing.finish_reason == "unknown_language":
            self._unknown_languages.add(flight.place.language)
        if landing.finish_reason in _POLICY:
            self._learns.policies.invalidate()
        self._back_off(landing)

    def _back_off(self, landing: CompletionResult) -> None:
        is_spent = landing.finish_reason in _BUDGET
        if is_spent or landing.finish_reason in (*_WHOLE, "filtered"):
            self._learns.board.set(is_over_budget=is_spent)
        hold_s = landing.retry_after_s or (_MAX_HOLD_S if is_spent else 0.0)
        if hold_s:
            now_s = self._learns.clock.monotonic_s()
            self._held_until_s = now_s + min(hold_s, _MAX_HOLD_S)


def _whole_suggestion(flight: InFlightRequest, result: CompletionResult) -> Suggestion:
    """Return the suggestion of a finished request: one that failed keeps what was offered."""
    text = result.text if result.finish_reason in _WHOLE and result.text.strip() else flight.offered
    return create_suggestion(
        flight.place, text.rstrip(), id=flight.id, request_id=flight.request_id
    )


def _request_id(done: Frame) -> str:
    meta = done.get("meta")
    return str(meta.get("request_id", "")) if isinstance(meta, dict) else ""


def _trigger_of(flight: InFlightRequest) -> str:
    if flight.is_prefetch:
        return "prefetch"
    return "manual" if flight.place.is_invoked else "automatic"
