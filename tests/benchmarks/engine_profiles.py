"""The speed of an engine, by the number of concurrent streams and by the maximum batch size.

The results are the reason for the value of --max-num-seqs in the engine profiles, and for their
choice to use speculation or not. Each stream imitates a developer who types in their own file. The
prompt has 1,500 cached tokens and grows by 8 tokens with each request. The completion has 32
tokens.

    python -m tests.benchmarks.engine_profiles [--limits 4 8 16] [--seconds 8]
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from caret.contracts.policy import Tier
from tests.benchmarks.engine_streams import (
    EngineAddress,
    code_tokens,
    engine_session,
    stream_completion,
)
from tests.benchmarks.replicas import own_replicas_of
from tests.benchmarks.results import Report, median, spread

_STREAMS: Final = (1, 2, 4, 8, 16)
_PROMPT_TOKENS: Final = 1_500
_MAX_PROMPT_TOKENS: Final = 4_000  # then the developer starts again at _PROMPT_TOKENS
_FILE_DISTANCE_TOKENS: Final = 1_000
_TYPED_TOKENS: Final = 8
_MAX_TOKENS: Final = 32
_SPECULATION: Final = '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}'


@dataclass(slots=True)
class _Times:
    first_ms: list[float] = field(default_factory=list)
    gap_ms: list[float] = field(default_factory=list)  # mean time between tokens, per completion
    num_tokens: int = 0


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    report = Report("engine_profiles")
    tokens = code_tokens()
    variants = {f"limit {limit}": ("--max-num-seqs", str(limit)) for limit in options.limits}
    variants["speculation"] = ("--speculative-config", _SPECULATION)
    for name, flags in variants.items():
        with own_replicas_of(flags) as (replica,):
            for num_streams in _STREAMS:
                run = _run(replica.url, tokens, num_streams=num_streams, run_s=options.seconds)
                _report_results(report, name, num_streams, asyncio.run(run), options.seconds)
    return report.exit_status


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--limits", type=int, nargs="*", default=[4, 8, 16], help="values of --max-num-seqs"
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="duration of each measurement")
    return parser.parse_args(arguments)


def _report_results(
    report: Report, name: str, num_streams: int, times: _Times, seconds: float
) -> None:
    report.figure(
        "first_token",
        median(times.first_ms),
        "ms",
        engine=name,
        tier=Tier.FAST.value,
        num_streams=num_streams,
        gap_ms=round(median(times.gap_ms), 2),
        tokens_per_s=round(times.num_tokens / seconds),
        **spread(times.first_ms),
    )


def split_files(tokens: list[int], num_streams: int) -> list[list[int]]:
    """Return a file for each stream; no two begin alike, so no stream uses another's cached blocks.

    Files begin 1,000 tokens apart, and the second half of `tokens` repeats the first one.
    """
    begins = range(0, num_streams * _FILE_DISTANCE_TOKENS, _FILE_DISTANCE_TOKENS)
    length = _MAX_PROMPT_TOKENS + _TYPED_TOKENS
    assert begins[-1] + length <= len(tokens) // 2, "too few tokens for the streams"
    return [tokens[begin : begin + length] for begin in begins]


async def _run(url: str, tokens: list[int], *, num_streams: int, run_s: float) -> _Times:
    times, engine = _Times(), EngineAddress(url, "demo")
    async with engine_session() as session:
        files = split_files(tokens, num_streams)
        warm_ups = (
            stream_completion(session, engine, file[:_PROMPT_TOKENS], max_tokens=_MAX_TOKENS)
            for file in files
        )
        await asyncio.gather(*warm_ups)
        until_s = time.monotonic() + run_s
        await asyncio.gather(
            *(_keep_typing(session, engine, file, times, until_s) for file in files)
        )
    return times


async def _keep_typing(
    session: aiohttp.ClientSession,
    engine: EngineAddress,
    file: list[int],
    times: _Times,
    until_s: float,
) -> None:
    length = _PROMPT_TOKENS
    while time.monotonic() < until_s:
        length = length + _TYPED_TOKENS if length < _MAX_PROMPT_TOKENS else _PROMPT_TOKENS
        stream = await stream_completion(session, engine, file[:length], max_tokens=_MAX_TOKENS)
        times.first_ms.append(stream.first_ms)
        times.gap_ms.append(stream.gap_ms)
        times.num_tokens += stream.num_tokens


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
