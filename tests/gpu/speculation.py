"""The gain of speculation by n-grams, for text that repeats and text that does not.

The models have random weights. Their greedy completions repeat two tokens, so that nearly all
drafts are right. With temperature 1, their tokens are random, so that no draft is right. The gain
for real completions lies in between. Two engines get the same prompts, one with speculation and one
without. `acceptance` is the share of drafted tokens that vLLM reports as accepted.
"""

import asyncio
import time
import uuid
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from tests.benchmarks.engine_metrics import read_metric
from tests.benchmarks.engine_streams import (
    EngineAddress,
    StreamTimes,
    code_tokens,
    engine_session,
    stream_completion,
)
from tests.benchmarks.results import Report, rounded, say
from tests.gpu.engines import RunningEngine
from tests.gpu.loads import Load, report_streams, tokens_per_s

STREAMS: Final = (1, 8)  # requests in flight
TEMPERATURES: Final = {"repeating": 0.0, "random": 1.0}  # by the kind of text
NUM_WINDOWS: Final = len(STREAMS) * len(TEMPERATURES)
FIGURE: Final = "tokens_per_s"
_MAX_TOKENS: Final = 64
_ACCEPTED: Final = "vllm:spec_decode_num_accepted_tokens_total"
_DRAFTED: Final = "vllm:spec_decode_num_draft_tokens_total"


async def measure_speculation(engine: RunningEngine, report: Report) -> None:
    length = engine.scale.prompt_tokens[0]
    prompt = code_tokens()[:length]
    for text in TEMPERATURES:
        for num_streams in STREAMS:
            load = Load(num_streams, length, is_warm=True, window_s=engine.scale.window_s)
            say(f"{text} text, {num_streams} streams")
            before = await _read_drafts(engine.url)
            streams = await _complete_for_window(engine.address, prompt, load, TEMPERATURES[text])
            after = await _read_drafts(engine.url)
            accepted, drafted = (new - old for new, old in zip(after, before, strict=True))
            about: dict[str, Any] = {"text": text, "num_drafted": drafted}
            about["acceptance"] = rounded(accepted / drafted) if drafted else None
            report_streams(report, "first_token", streams, load, **about)
            value = tokens_per_s(streams, load)
            report.figure(FIGURE, value, "tokens/s", num_streams=num_streams, **about)


def report_gain(plain: Sequence[dict[str, Any]], speculating: Sequence[dict[str, Any]]) -> None:
    """Print the tokens per second with speculation, divided by those without.

    The arguments are the printed lines of the step without speculation, and of the step with it.
    """
    report = Report("gpu.speculation_gain")
    without = {_text_and_streams(line): line["value"] for line in plain if line["figure"] == FIGURE}
    for line in speculating:
        if line["figure"] == FIGURE and _text_and_streams(line) in without:
            text, num_streams = _text_and_streams(line)
            gain = line["value"] / without[text, num_streams]
            about = {"text": text, "num_streams": num_streams, "acceptance": line["acceptance"]}
            report.figure("gain", gain, "ratio", **about)


def _text_and_streams(line: dict[str, Any]) -> tuple[str, int]:
    return line["text"], line["num_streams"]


async def _complete_for_window(
    engine: EngineAddress, prompt: list[int], load: Load, temperature: float
) -> list[StreamTimes]:
    salts = [uuid.uuid4().hex for _ in range(load.num_streams)]
    async with engine_session() as session:

        async def complete(salt: str) -> StreamTimes:
            return await stream_completion(
                session, engine, prompt, max_tokens=_MAX_TOKENS, salt=salt, temperature=temperature
            )

        await asyncio.gather(*map(complete, salts))  # fills the cache
        until_s = time.monotonic() + load.window_s

        async def keep_completing(salt: str) -> list[StreamTimes]:
            streams = [await complete(salt)]
            while time.monotonic() < until_s:
                streams.append(await complete(salt))
            return streams

        return list(chain.from_iterable(await asyncio.gather(*map(keep_completing, salts))))


async def _read_drafts(engine_url: str) -> tuple[float, float]:
    """Return the accepted and the drafted tokens so far."""
    return await read_metric(engine_url, _ACCEPTED), await read_metric(engine_url, _DRAFTED)
