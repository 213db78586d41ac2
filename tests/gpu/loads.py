"""Time to first token under load, directly at the engine: cold and warm prompts of two lengths.

A load is a number of requests in flight. Each stream sends its next request as soon as it has a
response. A warm prompt differs from the stream's previous prompt only in its last tokens, as if a
user typed. A cold prompt is in no cache.
"""

import asyncio
import random
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import aiohttp

from caret.contracts.policy import Tier
from tests.benchmarks.engine_streams import (
    EngineAddress,
    StreamTimes,
    code_tokens,
    engine_session,
    stream_completion,
)
from tests.benchmarks.results import Report, median, percentile, rounded, say, spread
from tests.gpu.engines import RunningEngine

MAX_WARM_P95_MS: Final = 200.0  # on the quality tier, at the lowest load
MAX_TOKENS: Final = 32
_TYPED_TOKENS: Final = 8
_TYPED_IDS: Final = range(300, 4_000)  # token IDs of arbitrary words
_FILE_DISTANCE: Final = 97  # tokens between the beginnings of two streams' files in the same text


@dataclass(frozen=True, slots=True)
class Load:
    num_streams: int
    prompt_tokens: int
    is_warm: bool
    window_s: float  # duration; no request begins later


async def measure_loads(engine: RunningEngine, report: Report) -> None:
    scale, tokens = engine.scale, code_tokens()
    for prompt_tokens in scale.prompt_tokens:
        for multiple in scale.loads:
            for is_warm in (False, True):
                num_streams = multiple * scale.streams_per_load
                load = Load(num_streams, prompt_tokens, is_warm, scale.window_s)
                state = "warm" if is_warm else "cold"
                say(f"{state}, {prompt_tokens} tokens, {num_streams} streams")
                streams = await run_load(engine.address, tokens, load)
                figure = f"first_token.{state}.{prompt_tokens}"
                report_streams(report, figure, streams, load, times_the_load=multiple)
                if is_warm and multiple == min(scale.loads):
                    _judge(report, engine.settings.profile, prompt_tokens, streams)


async def run_load(engine: EngineAddress, tokens: Sequence[int], load: Load) -> list[StreamTimes]:
    # The text of stream n begins n * _FILE_DISTANCE tokens later than that of stream 0.
    files = [
        [*tokens[number * _FILE_DISTANCE :], *tokens][: load.prompt_tokens]
        for number in range(load.num_streams)
    ]
    async with engine_session() as session:
        if load.is_warm:  # fill the cache; each stream has its number as its cache namespace
            await asyncio.gather(
                *(_send(session, engine, file, str(n)) for n, file in enumerate(files))
            )
        until_s = time.monotonic() + load.window_s
        streams = await asyncio.gather(
            *(
                _keep_sending(session, engine, file, str(number) if load.is_warm else None, until_s)
                for number, file in enumerate(files)
            )
        )
    return list(chain.from_iterable(streams))


async def _keep_sending(
    session: aiohttp.ClientSession,
    engine: EngineAddress,
    file: list[int],
    salt: str | None,
    until_s: float,
) -> list[StreamTimes]:
    """Send requests one after the other.

    The salt is their cache namespace. Without a salt, each request has a namespace of its own.
    """
    streams: list[StreamTimes] = []
    while time.monotonic() < until_s or not streams:
        typed = random.choices(_TYPED_IDS, k=_TYPED_TOKENS)
        prompt = file[:-_TYPED_TOKENS] + typed
        streams.append(await _send(session, engine, prompt, salt or uuid.uuid4().hex))
    return streams


async def _send(
    session: aiohttp.ClientSession, engine: EngineAddress, prompt: list[int], salt: str
) -> StreamTimes:
    # Temperature 1: random text, of which speculation predicts nothing.
    return await stream_completion(
        session, engine, prompt, max_tokens=MAX_TOKENS, salt=salt, temperature=1.0
    )


def report_streams(
    report: Report,
    figure: str,
    streams: Sequence[StreamTimes],
    load: Load,
    **more: object,
) -> None:
    first_ms = [stream.first_ms for stream in streams]
    num_cached = sum(stream.num_cached_tokens for stream in streams)
    report.figure(
        figure,
        median(first_ms),
        "ms",
        num_streams=load.num_streams,
        p95=rounded(percentile(first_ms, 95)),
        gap_ms=rounded(median([stream.gap_ms for stream in streams])),
        tokens_per_s=rounded(tokens_per_s(streams, load)),
        cached_percent=rounded(100 * num_cached / (len(streams) * load.prompt_tokens)),
        **more,
        **spread(first_ms),
    )


def tokens_per_s(streams: Sequence[StreamTimes], load: Load) -> float:
    """Return the generated tokens per second while all streams were busy."""
    # `streams` has the times of all requests. The quotient is the busy time of one stream.
    busy_s = sum(stream.end_ms for stream in streams) / 1000 / load.num_streams
    return sum(stream.num_tokens for stream in streams) / busy_s


def _judge(
    report: Report, profile: Tier, prompt_tokens: int, streams: Sequence[StreamTimes]
) -> None:
    if profile is Tier.QUALITY:
        p95 = percentile([stream.first_ms for stream in streams], 95)
        report.target(f"first_token.warm.{prompt_tokens}.p95", p95, "ms", at_most=MAX_WARM_P95_MS)
