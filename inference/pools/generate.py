"""The generate stage: call the engine, and record its progress in the request trace.

If a replica fails, the stage calls the next replica. A completion never returns to a failed
replica. The client may already have text of the failed replica, so the next replica continues after
this text. With greedy decoding, the next replica generates what the failed replica would have
generated, except for numerical differences between batches.

A completion of one line has the line break as a stop string. If Caret closed the stream at the line
break instead, the engine would not report its cached tokens. If the completion continues below the
line, a second request generates the rest. The second request has no line break among its stop
strings.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Final, Protocol

import structlog

from inference.completion.generation_options import TimeLimits
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import MAX_SEND_S
from inference.errors import BadRequest, CompletionError, EngineError
from inference.pools.engine import Engine, EngineChunk, EngineRequest, EngineStop
from inference.pools.health.replica_states import ReplicaAttempt, ReplicaStates

# These errors show that the replica failed: another replica would have generated the text.
_REPLICA_FAILURES: Final = ("engine_unavailable", "engine_disconnected", "engine_invalid_response")
# The next replica is called only after these errors. After others, it would most likely fail, too.
_RETRYABLE: Final = (*_REPLICA_FAILURES, "engine_timeout", "engine_busy")
# Log events after a replica failed, by the stop of the completion.
_EVENTS: Final = {
    None: "completion.resumed",  # another replica continues
    EngineStop.DISCONNECTED: "completion.cut_off",
    EngineStop.LENGTH: "completion.end_lost",  # all tokens had been generated
}
log = structlog.get_logger(__name__)


# Returns whether a completion continues below the given text, which ends with a complete line.
ContinuesBelow = Callable[[str], bool]


class TokenEncoder(Protocol):
    def encode(self, text: str) -> list[int]:
        """Return token IDs of the pool's model."""


@asynccontextmanager
async def generate(
    engine: Engine,
    engine_request: EngineRequest,
    replicas: ReplicaStates,
    trace: RequestTrace,
    encoder: TokenEncoder,
    continues_below: ContinuesBelow | None = None,
) -> AsyncIterator[AsyncIterator[EngineChunk]]:
    """Yield an iterator of the completion's chunks. Leaving the context stops the engine at once.

    The iterator raises EngineError if all attempts fail before the first text. If they fail later,
    its last chunk has EngineStop.DISCONNECTED, or LENGTH if all tokens had been generated.

    `max_duration_s` limits all attempts together. Afterwards, the context raises EngineError, or
    BadRequest if the client read too slowly. `continues_below` is used for completions of one line.
    """
    trace.mark_engine_called()

    def stream_from(request: EngineRequest, text_before: str) -> AsyncGenerator[EngineChunk, None]:
        return _stream_chunks(engine, request, replicas, trace, encoder, text_before=text_before)

    stream = (
        stream_from(engine_request, "")
        if continues_below is None
        else _stream_lines(stream_from, engine_request, encoder, continues_below)
    )
    try:
        async with (
            asyncio.timeout(engine_request.max_duration_s),
            aclosing(stream),
            aclosing(_stop_at_limits(stream, engine_request.time_limits)) as chunks,
        ):
            yield chunks
    except TimeoutError:
        raise _make_timeout_error(trace) from None


def _make_timeout_error(trace: RequestTrace) -> CompletionError:
    if trace.client_wait_s > MAX_SEND_S:
        return BadRequest("too_slow", "The response was read too slowly.", http_status=408)
    return EngineError("deadline_exceeded", "The completion took too long.", http_status=504)


async def _stop_at_limits(
    stream: AsyncGenerator[EngineChunk, None], limits: TimeLimits
) -> AsyncGenerator[EngineChunk, None]:
    """Yield the chunks. When one of the client's time limits has passed, end with LENGTH."""
    clock_s = asyncio.get_running_loop().time
    due_s = _add_ms(clock_s(), limits.first_token_ms)
    num_tokens, has_begun = 0, False
    while True:
        try:
            async with asyncio.timeout_at(due_s):
                chunk = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            yield EngineChunk("", num_tokens, EngineStop.LENGTH)
            return
        # Text is enough, because not every engine counts tokens while it streams.
        if not has_begun and (chunk.text or chunk.generated_tokens):
            has_begun, due_s = True, _add_ms(clock_s(), limits.generation_ms)
        num_tokens = chunk.generated_tokens
        yield chunk


def _add_ms(moment_s: float, duration_ms: int | None) -> float | None:
    return None if duration_ms is None else moment_s + duration_ms / 1000


async def _stream_lines(
    stream_from: Callable[[EngineRequest, str], AsyncGenerator[EngineChunk, None]],
    engine_request: EngineRequest,
    encoder: TokenEncoder,
    continues_below: ContinuesBelow,
) -> AsyncGenerator[EngineChunk, None]:
    """Yield the chunks of a line, and of the lines below it that belong to the completion."""
    text, is_continued = "", False
    async with aclosing(stream_from(engine_request, "")) as chunks:
        async for chunk in chunks:
            if is_continued:
                continue  # The remaining chunks only have counts, which are in the trace already.
            text += chunk.text
            if chunk.stop is EngineStop.LINE and continues_below(text):
                # Continue only if the token limit leaves a token for the second request.
                is_continued = len(encoder.encode(f"{text}\n")) < engine_request.max_tokens
            if is_continued:
                # The line break was the stop string, so the engine left it out.
                chunk = replace(chunk, text=f"{chunk.text}\n", stop=None)
            yield chunk
    if is_continued:
        async with aclosing(stream_from(engine_request.without_line_stop(), f"{text}\n")) as chunks:
            async for chunk in chunks:
                yield chunk


async def _stream_chunks(
    engine: Engine,
    engine_request: EngineRequest,
    replicas: ReplicaStates,
    trace: RequestTrace,
    encoder: TokenEncoder,
    *,
    text_before: str,
) -> AsyncGenerator[EngineChunk, None]:
    """Yield the chunks that follow `text_before`, the text of an earlier request."""
    requests = _drop_failed([engine_request, *engine_request.for_fallbacks()], trace)
    texts = [text_before]
    # The token IDs of the text before the current attempt.
    token_ids = encoder.encode(text_before) if text_before else []
    stop: EngineStop | None = None
    while stop is None:
        request = requests.pop(0).resume_after(token_ids)
        try:
            with _track_attempt(request, replicas, trace) as attempt:
                async with engine.complete(request) as chunks:
                    async for chunk in chunks:
                        _on_chunk(chunk, request, attempt, trace, num_generated=len(token_ids))
                        texts.append(chunk.text)
                        stop = chunk.stop or stop
                        # The engine counts only the tokens of the current attempt.
                        yield (
                            replace(chunk, generated_tokens=trace.generated_tokens)
                            if token_ids
                            else chunk
                        )
            return
        except EngineError as error:
            if stop is not None:
                return  # the completion is complete: the rest of the stream is not needed
            # If the error is not retryable, no request remains. Replicas may be draining by now.
            requests = [
                fallback
                for fallback in requests
                if error.code in _RETRYABLE and not replicas.is_drained(fallback.replica)
            ]
            if not (requests or any(texts)):
                raise
            # The text is encoded again, because the engine may have counted tokens of text that it
            # held back: the possible beginning of a stop string. That text is generated again.
            token_ids = encoder.encode("".join(texts))
            stop = _to_engine_stop(
                num_left=engine_request.max_tokens - len(token_ids), has_next=bool(requests)
            )
            _log_failure(error, request, trace, stop)
        if stop is None:
            trace.mark_rerouted(requests[0])
    # All attempts failed after the first text, or all tokens had been generated.
    yield EngineChunk("", trace.generated_tokens, stop)


def _drop_failed(requests: list[EngineRequest], trace: RequestTrace) -> list[EngineRequest]:
    """Drop the requests to replicas that failed while the first line was generated.

    `trace.replica` is the replica that was used last. All requests before its own have failed.
    """
    names = [request.replica_name for request in requests]
    return requests[names.index(trace.replica) :] if trace.replica in names else requests


def _clamp_to_prompt(
    cached_tokens: int | None, request: EngineRequest, num_generated: int
) -> int | None:
    """Return the cached tokens of the prompt alone; None if the engine does not report them.

    The engine may also have cached text of earlier attempts, which is not part of the prompt.
    """
    if cached_tokens is None:
        return None
    return min(cached_tokens, len(request.token_ids) - num_generated)


def _to_engine_stop(*, num_left: int, has_next: bool) -> EngineStop | None:
    """Return the stop of a completion after a failed attempt; None if another replica continues."""
    if num_left <= 0:
        return EngineStop.LENGTH
    return None if has_next else EngineStop.DISCONNECTED


def _log_failure(
    error: EngineError,
    failed_request: EngineRequest,
    trace: RequestTrace,
    stop: EngineStop | None,
) -> None:
    """Log the failure, unless the completion has no token yet."""
    if trace.generated_tokens:
        log.warning(
            _EVENTS[stop],
            request_id=trace.arrival.request_id,
            lost=failed_request.replica_name,
            error=error.code,
            generated_tokens=trace.generated_tokens,
        )


@contextmanager
def _track_attempt(
    request: EngineRequest, replicas: ReplicaStates, trace: RequestTrace
) -> Iterator[ReplicaAttempt]:
    with replicas.attempt(
        request.replica,
        is_preemptible=request.is_preemptible,
        first_token_timeout_s=request.first_token_timeout_s,
        fallback=next(iter(request.fallback_replicas), None),
    ) as attempt:
        try:
            yield attempt
        except EngineError as error:
            if error.code in _REPLICA_FAILURES:
                attempt.mark_failed()
            raise
        finally:
            trace.mark_engine_closed()


def _on_chunk(
    chunk: EngineChunk,
    request: EngineRequest,
    attempt: ReplicaAttempt,
    trace: RequestTrace,
    *,
    num_generated: int,
) -> None:
    trace.record_chunk(
        generated_tokens=num_generated + chunk.generated_tokens,
        cached_tokens=_clamp_to_prompt(chunk.cached_tokens, request, num_generated),
    )
    # Text or a stop is enough, because not every engine counts tokens while it streams.
    if chunk.text or chunk.generated_tokens or chunk.stop:
        attempt.mark_succeeded()
