"""The adapter to vLLM servers: their OpenAI interface with token IDs, streamed.

Closing the response aborts the request: vLLM ends the request at the next step of its scheduler.
Only the fields of `_build_body` are sent. A client's body and headers are not passed on, because
vLLM would obey priority headers, session IDs and transfer parameters.
"""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from http import HTTPStatus
from typing import Final, Self

import msgspec

from inference.completion.generation_options import Sampling
from inference.errors import EngineError, PromptRefused
from inference.pools.engine import EngineChunk, EngineRequest, EngineStop
from inference.pools.vllm.http_client import HttpClient, HttpResponse
from inference.pools.vllm.http_connection import ConnectionFailed, MalformedResponse

_DONE: Final = b"[DONE]"  # the data line after the last event
# Caused by the client's content. Other 4xx statuses (401, 404, ...) are configuration errors.
_CONTENT_STATUSES: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
# 503: the queue is full, or the engine is starting. 429 comes from routers in front of engines.
_BUSY_STATUSES: Final = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)
_REGEX_SYNTAX: Final = re.compile(r"[\\.^$*+?()\[\]{}|]")


class _Choice(msgspec.Struct):
    text: str = ""
    finish_reason: str | None = None
    # The stop string or token; None: the model ended the text, or the engine does not report it.
    stop_reason: str | int | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None


class _StreamEvent(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: object = None  # of any JSON type; None: no error


_NO_CHOICE: Final = _Choice()
_decode_event = msgspec.json.Decoder(_StreamEvent).decode
_encode = msgspec.json.Encoder().encode


class VllmEngine:
    """The engine port for all vLLM replicas, with one HTTP client."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    @asynccontextmanager
    async def complete(self, request: EngineRequest) -> AsyncIterator[AsyncIterator[EngineChunk]]:
        with closing(await self._send_request(request)) as response:
            if response.status != HTTPStatus.OK:
                raise _to_engine_error(response.status)
            yield _ChunkStream(response, request)

    async def _send_request(self, request: EngineRequest) -> HttpResponse:
        url = f"{request.replica.url}/v1/completions"
        try:
            return await self._client.post(url, _encode(_build_body(request)))
        except (ConnectionFailed, TimeoutError, OSError) as error:
            raise EngineError(
                "engine_unavailable", "No engine is available.", http_status=503
            ) from error


def _build_body(request: EngineRequest) -> dict[str, object]:
    return {
        "model": request.pool.model,
        "prompt": request.token_ids,
        "max_tokens": request.max_tokens,
        **_build_sampling_fields(request.sampling),
        **_build_constraint_fields(request),
        "stop": request.stop,
        "stop_token_ids": request.stop_token_ids,
        "cache_salt": request.salt,
        "priority": request.priority,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


def _build_sampling_fields(sampling: Sampling) -> dict[str, float | None]:
    if sampling.is_greedy:
        return {"temperature": 0}
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
    }


def _build_constraint_fields(request: EngineRequest) -> dict[str, object]:
    """Return the field that makes the engine begin the completion with the required prefix.

    The optional salt at the end of the pattern does not change which texts match. vLLM caches
    compiled patterns. Without the salt, a tenant could find words that others typed by measuring
    whether a pattern is cached.
    """
    prefix = request.required_prefix
    # vLLM refuses NUL. Other characters that cannot be printed are rare in code. A prefix with such
    # a character is not required of the engine. The filter checks every completion anyway.
    if not prefix or not prefix.replace("\t", " ").isprintable():
        return {}
    pattern = _REGEX_SYNTAX.sub(r"\\\g<0>", prefix)  # a backslash before each special character
    # `[\s\S]*` matches any further text, line breaks included.
    return {"structured_outputs": {"regex": rf"{pattern}[\s\S]*({request.salt})?"}}


class _ChunkStream:
    """The chunks of a stream. The last one has the stop and, if reported, the cached tokens.

    All events that have arrived become one chunk: under load, several tokens arrive together. A
    generator would cost more CPU time, because event loops track generators to close them.
    """

    def __init__(self, response: HttpResponse, request: EngineRequest) -> None:
        self._response = response
        self._reader = _StreamReader(request)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> EngineChunk:
        reader = self._reader
        while reader.failure is None and not reader.is_done:
            if not (lines := await _read_lines(self._response)):
                break
            if (chunk := reader.read(lines)) is not None:
                return chunk
        if reader.failure is not None:
            raise reader.failure
        if reader.stop is None:
            raise _make_disconnected_error()
        self._response.can_reuse_connection = True
        raise StopAsyncIteration


async def _read_lines(response: HttpResponse) -> list[bytes]:
    try:
        return await response.read_lines()
    except MalformedResponse:
        raise _make_invalid_response_error() from None
    except ConnectionFailed as error:
        raise _make_disconnected_error() from error


class _StreamReader:
    """Reads the events of one completion, and keeps its counts."""

    def __init__(self, request: EngineRequest) -> None:
        # Counted tokens are billed, so counts never exceed the limits of the request.
        self._max_generated_tokens = request.max_tokens
        self._max_cached_tokens = len(request.token_ids)
        self.stop: EngineStop | None = None  # None: not reported yet
        self.is_done = False  # the last line has arrived
        self.failure: EngineError | None = None  # raised after the text before it
        self._generated_tokens = 0

    def read(self, lines: Sequence[bytes]) -> EngineChunk | None:
        """Combine the events of these data lines into one chunk; None if there are no events.

        An error is not raised but stored in `failure`.
        """
        texts: list[str] = []
        usage: _Usage | None = None  # the last one is enough: each counts from the beginning
        try:
            for line in lines:
                if line == _DONE:
                    self.is_done = True
                    break
                event = _parse_event(line)
                choice = event.choices[0] if event.choices else _NO_CHOICE
                if choice.finish_reason is not None:
                    self.stop = _to_engine_stop(choice.finish_reason, choice.stop_reason)
                usage = event.usage or usage
                texts.append(choice.text)
        except EngineError as failure:
            self.failure = failure
        if not texts:
            return None
        cached_tokens = None if usage is None else self._store_counts(usage)
        return EngineChunk("".join(texts), self._generated_tokens, self.stop, cached_tokens)

    def _store_counts(self, usage: _Usage) -> int | None:
        """Store the number of generated tokens, and return that of cached tokens, if reported."""
        self._generated_tokens = _clamp_count(usage.completion_tokens, self._max_generated_tokens)
        details = usage.prompt_tokens_details
        if details is None or details.cached_tokens is None:
            return None
        return _clamp_count(details.cached_tokens, self._max_cached_tokens)


def _clamp_count(count: int, max_count: int) -> int:
    return min(max(count, 0), max_count)


def _parse_event(line: bytes) -> _StreamEvent:
    """Decode an event. Raises EngineError, PromptRefused."""
    try:
        event = _decode_event(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise _make_invalid_response_error() from None
    if event.error is not None:
        raise _to_engine_error(_find_status(event.error))
    return event


def _to_engine_stop(finish_reason: str, stop_reason: str | int | None) -> EngineStop:
    """Convert the reasons of a choice. Raises EngineError if the engine aborted the request."""
    if finish_reason == "abort":  # the engine is shutting down
        raise _make_disconnected_error()
    if finish_reason == "length":
        return EngineStop.LENGTH
    return EngineStop.LINE if stop_reason == "\n" else EngineStop.STOP


def _find_status(error: object) -> int | None:
    """Return the HTTP status in an error event; None if it has none."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else None


def _to_engine_error(status: int | None) -> EngineError:
    if status in _CONTENT_STATUSES:
        return PromptRefused()
    if status in _BUSY_STATUSES:
        return EngineError("engine_busy", "The engine accepts no requests now.", http_status=503)
    if status is not None and status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return EngineError("engine_disconnected", "The engine failed.")
    return EngineError("engine_refused", "The engine rejected the request.")


def _make_invalid_response_error() -> EngineError:
    return EngineError("engine_invalid_response", "The engine's response is invalid.")


def _make_disconnected_error() -> EngineError:
    return EngineError("engine_disconnected", "The engine ended in mid-stream.")
