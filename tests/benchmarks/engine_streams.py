"""Completions streamed directly from an engine, with their times."""

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from caret.local.engines.engine import DEMO_MODEL
from inference.context.tokenization.tokenizer import load_tokenizer


@dataclass(frozen=True, slots=True)
class EngineAddress:
    url: str
    model: str  # its served name


@dataclass(frozen=True, slots=True)
class StreamTimes:
    first_ms: float  # until the first token
    end_ms: float
    num_tokens: int  # generated
    num_cached_tokens: int  # of the prompt

    @property
    def gap_ms(self) -> float:
        """Return the mean time between two tokens."""
        return (self.end_ms - self.first_ms) / max(1, self.num_tokens - 1)


def code_tokens() -> list[int]:
    """Return the tokens of two Python modules by the demonstration model's tokenizer.

    The modules are repeated once, so that the list is long enough for long prompts.
    """
    text = (Path(argparse.__file__).read_text() + Path(asyncio.__file__).read_text()) * 2
    return list(load_tokenizer(str(DEMO_MODEL)).encode(text))


@asynccontextmanager
async def engine_session() -> AsyncIterator[aiohttp.ClientSession]:
    # vLLM closes idle connections at any moment, so each request has its own.
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield session


async def stream_completion(
    session: aiohttp.ClientSession,
    engine: EngineAddress,
    prompt: Sequence[int],
    *,
    max_tokens: int,
    salt: str | None = None,
    temperature: float = 0.0,
) -> StreamTimes:
    """Request a completion of exactly `max_tokens` tokens, in the cache namespace of the salt."""
    body: dict[str, Any] = {
        "model": engine.model,
        "prompt": list(prompt),
        "max_tokens": max_tokens,
        "temperature": temperature,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if salt is not None:
        body["cache_salt"] = salt
    started_s = time.monotonic()
    first_s: float | None = None
    usage: dict[str, Any] = {}
    async with session.post(f"{engine.url}/v1/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.content:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[len(b"data: ") :])
            if event["choices"] and first_s is None:
                first_s = time.monotonic()
            usage = event.get("usage") or usage
    assert first_s is not None, "the engine sent no token"
    details = usage.get("prompt_tokens_details") or {}
    return StreamTimes(
        first_ms=(first_s - started_s) * 1000,
        end_ms=(time.monotonic() - started_s) * 1000,
        num_tokens=usage["completion_tokens"],
        num_cached_tokens=details.get("cached_tokens") or 0,
    )
