"""KV offloading: the time to first token if KV blocks are restored from the host's memory.

The engine's own cache has room for two prompts. Each round sends a new prompt (cold) and sends it
again (warm). Then it sends other prompts until the first prompt has left the cache, and sends the
first prompt again (restored). vLLM's CPU build has no offloading, so there the prompt is not
restored.
"""

import uuid
from collections import defaultdict
from typing import Final

from caret.local.engines.profiles import Hardware
from tests.benchmarks.engine_streams import (
    StreamTimes,
    code_tokens,
    engine_session,
    stream_completion,
)
from tests.benchmarks.results import Report, median, rounded, say, spread
from tests.gpu.engines import RunningEngine

MIN_RESTORED_PERCENT: Final = 90.0
STATES: Final = ("cold", "warm", "restored")


async def measure_offloading(engine: RunningEngine, report: Report) -> None:
    length = max(engine.scale.prompt_tokens)
    # The cache has room for 2 * max_model_tokens. These are more prompts than fit into it.
    num_others = 2 * engine.scale.max_model_tokens // length + 1
    prompt = code_tokens()[:length]
    streams: dict[str, list[StreamTimes]] = defaultdict(list)
    async with engine_session() as session:
        # The salt is the prompt's cache namespace, so a new salt makes the prompt a new one.
        async def send(salt: str) -> StreamTimes:
            return await stream_completion(session, engine.address, prompt, max_tokens=1, salt=salt)

        for number in range(engine.scale.num_rounds):
            say(f"round {number + 1} of {engine.scale.num_rounds}")
            salt = uuid.uuid4().hex
            streams["cold"].append(await send(salt))
            streams["warm"].append(await send(salt))
            for _ in range(num_others):
                await send(uuid.uuid4().hex)
            streams["restored"].append(await send(salt))
    has_connector = engine.settings.hardware is Hardware.GPU
    for state in STATES:
        _report(report, state, streams[state], length, has_connector=has_connector)


def _report(
    report: Report, state: str, streams: list[StreamTimes], length: int, *, has_connector: bool
) -> None:
    first_ms = [stream.first_ms for stream in streams]
    cached = 100 * median([stream.num_cached_tokens for stream in streams]) / length
    about = {"prompt_tokens": length, "has_connector": has_connector}
    report.figure(f"{state}.first_token", median(first_ms), "ms", **about, **spread(first_ms))
    if state == "restored":
        passed, target = cached >= MIN_RESTORED_PERCENT, f"at least {MIN_RESTORED_PERCENT:g}"
        report.judged(f"{state}.cached", cached, "%", passed=passed, target=target, **about)
    else:
        report.figure(f"{state}.cached", rounded(cached), "%", **about)
