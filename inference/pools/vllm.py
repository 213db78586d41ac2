"""The adapter to vLLM servers: their OpenAI interface, with token ids, streamed.

Closing the response is the abort: vLLM ends the request at its next step. Only the fields below are
ever sent; nothing of a client's body or headers passes through (facts that others found: priority
headers, session ids and transfer parameters would be obeyed).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

import aiohttp
import msgspec
from aiohttp.http_exceptions import LineTooLong

from inference.errors import EngineFailed
from inference.pools.engine import Chunk, EngineRequest, EngineStop

CONNECT_S: Final = 1.0
_DATA: Final = b"data: "
_DONE: Final = b"[DONE]"


class _Choice(msgspec.Struct):
    text: str = ""
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None


class _Event(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: object = None  # of any shape


_decode_event = msgspec.json.Decoder(_Event).decode
_encode = msgspec.json.Encoder().encode


class VllmEngine:
    """One client for all replicas; keeps connections open between requests."""

    def __init__(self, session: aiohttp.ClientSession, *, max_stall_s: float) -> None:
        self._session = session
        # Silence for so long is the end of a stream: an engine that hangs must not hold seats.
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_S, sock_read=max_stall_s
        )

    @asynccontextmanager
    async def complete(self, request: EngineRequest) -> AsyncIterator[AsyncIterator[Chunk]]:
        response = await self._ask(request)
        try:
            if response.status != 200:
                raise _refused(response.status)
            async with aclosing(_chunks(response)) as chunks:
                yield chunks
        finally:
            # Not release(): an unfinished response's connection is closed, which aborts it.
            response.close()

    async def _ask(self, request: EngineRequest) -> aiohttp.ClientResponse:
        try:
            try:
                return await self._post(request)
            except (aiohttp.ServerDisconnectedError, ConnectionResetError):
                # The server closed an idle connection just as it was used again: once more.
                return await self._post(request)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise EngineFailed(
                "engine_unavailable", "No engine is available at the moment.", http_status=503
            ) from error

    async def _post(self, request: EngineRequest) -> aiohttp.ClientResponse:
        return await self._session.post(
            f"{request.replica.url}/v1/completions",
            data=_encode(_body(request)),
            headers={"Content-Type": "application/json"},
            timeout=self._timeout,
        )


def _body(request: EngineRequest) -> dict[str, object]:
    return {
        "model": request.pool.model,
        "prompt": request.token_ids,
        "max_tokens": request.max_tokens,
        "temperature": 0,
        "stop": request.stop,
        "stop_token_ids": request.stop_token_ids,
        "cache_salt": request.salt,
        "priority": request.priority,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


async def _chunks(response: aiohttp.ClientResponse) -> AsyncGenerator[Chunk, None]:
    """The stream's chunks, the last one with the stop and, when the engine says so, cached tokens.

    The engine tells the reason first and the usage after it; both go out as two chunks.
    """
    stop: EngineStop | None = None
    try:
        async for line in response.content:
            if not line.startswith(_DATA):
                continue
            data = line[len(_DATA) :].strip()
            if data == _DONE:
                break
            chunk = _chunk(data, stop)
            stop = chunk.stop or stop
            yield chunk
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _lost() from error
    except (ValueError, LineTooLong):  # a line longer than any of an engine's
        raise _garbled() from None
    if stop is None:
        raise _lost()
    # Read to the end of the body, so that the connection is kept for the next request.
    await _drain(response)


async def _drain(response: aiohttp.ClientResponse) -> None:
    try:
        async with asyncio.timeout(0.05):
            await response.content.read()
    except (aiohttp.ClientError, TimeoutError, OSError):
        pass  # the completion is whole; only the connection is not kept


def _chunk(data: bytes, stop: EngineStop | None) -> Chunk:
    try:
        event = _decode_event(data)
    except (msgspec.MsgspecError, RecursionError):
        raise _garbled() from None
    if event.error is not None:
        raise _refused(_status_in(event.error))
    usage = event.usage or _Usage()
    details = usage.prompt_tokens_details
    choice = event.choices[0] if event.choices else _Choice()
    return Chunk(
        text=choice.text,
        generated_tokens=usage.completion_tokens,
        stop=_stop(choice.finish_reason) or stop,
        cached_tokens=details.cached_tokens if details is not None else None,
    )


def _stop(reason: str | None) -> EngineStop | None:
    if reason is None:
        return None
    if reason == "abort":  # the engine is going down
        raise _lost()
    return EngineStop.LENGTH if reason == "length" else EngineStop.STOP


def _status_in(error: object) -> int | None:
    """A refusal that raced with others comes as 200 and an error that names its own status."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else None


def _refused(status: int | None) -> EngineFailed:
    if status == 503:  # its queue is full, or it is starting
        return EngineFailed("engine_busy", "The engine takes no requests now.", http_status=503)
    return EngineFailed("engine_refused", "The engine refused the request.")


def _garbled() -> EngineFailed:
    return EngineFailed("engine_garbled", "The engine's answer was not understood.")


def _lost() -> EngineFailed:
    return EngineFailed("engine_lost", "The engine ended in mid-stream.")
