"""The speed of an engine by the number of concurrent streams and by its limit of a batch.

It justifies --max-num-seqs of the profiles, and their choice about speculation. Each stream is a
developer in a file of their own: a warm prompt of 1,500 tokens that grows by 8 tokens with each
request, and a completion of 32 tokens.

    python -m tests.benchmarks.engine_profiles [--limits 4 8 16] [--seconds 8]
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from caret.contracts.policy import Tier
from caret.local.engines.engine import DEMO_MODEL
from inference.context.tokenization.tokenizer import load_tokenizer
from tests.benchmarks.replicas import own_replicas_of
from tests.benchmarks.results import Report, median, spread

_STREAMS: Final = (1, 2, 4, 8, 16)
_PROMPT_TOKENS: Final = 1_500
_TYPED_TOKENS: Final = 8
_MAX_TOKENS: Final = 32
_SPECULATION: Final = '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}'


@dataclass(slots=True)
class _Times:
    first_ms: list[float] = field(default_factory=list)
    gap_ms: list[float] = field(default_factory=list)  # of a token, on average of a completion
    num_tokens: int = 0


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    report = Report("engine_profiles")
    tokens = _code_tokens()
    variants = {f"limit {limit}": ("--max-num-seqs", str(limit)) for limit in options.limits}
    variants["speculation"] = ("--speculative-config", _SPECULATION)
    for name, flags in variants.items():
        with own_replicas_of(flags) as (replica,):
            for num_streams in _STREAMS:
                run = _run(replica.url, tokens, num_streams=num_streams, run_s=options.seconds)
                _print(report, name, num_streams, asyncio.run(run), options.seconds)
    return report.exit_status


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", type=int, nargs="*", default=[4, 8, 16])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    return parser.parse_args(arguments)


def _code_tokens() -> list[int]:
    text = (Path(argparse.__file__).read_text() + Path(asyncio.__file__).read_text()) * 2
    return list(load_tokenizer(str(DEMO_MODEL)).encode(text))


def _print(report: Report, name: str, num_streams: int, times: _Times, seconds: float) -> None:
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


async def _run(url: str, tokens: list[int], *, num_streams: int, run_s: float) -> _Times:
    times = _Times()
    # vLLM closes idle connections at any moment, so each request has its own.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        files = [tokens[(number * 1_000) % 8_000 :] for number in range(num_streams)]
        await asyncio.gather(*(_complete(session, url, file[:_PROMPT_TOKENS]) for file in files))
        until_s = time.monotonic() + run_s
        await asyncio.gather(*(_type(session, url, file, times, until_s) for file in files))
    return times


async def _type(
    session: aiohttp.ClientSession, url: str, file: list[int], times: _Times, until_s: float
) -> None:
    length = _PROMPT_TOKENS
    while time.monotonic() < until_s:
        length = length + _TYPED_TOKENS if length < 4_000 else _PROMPT_TOKENS
        first_ms, end_ms, num_tokens = await _complete(session, url, file[:length])
        times.first_ms.append(first_ms)
        times.gap_ms.append((end_ms - first_ms) / max(1, num_tokens - 1))
        times.num_tokens += num_tokens


async def _complete(
    session: aiohttp.ClientSession, url: str, prompt: list[int]
) -> tuple[float, float, int]:
    """Return the times of the first and the last token in ms, and the number of tokens."""
    body: dict[str, Any] = {
        "model": "demo",
        "prompt": prompt,
        "max_tokens": _MAX_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    started_s = time.monotonic()
    first_s, num_tokens = None, 0
    async with session.post(f"{url}/v1/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.content:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[len(b"data: ") :])
            if event["choices"] and first_s is None:
                first_s = time.monotonic()
            if event.get("usage"):
                num_tokens = event["usage"]["completion_tokens"]
    assert first_s is not None, "the engine sent no token"
    return (first_s - started_s) * 1000, (time.monotonic() - started_s) * 1000, num_tokens


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
