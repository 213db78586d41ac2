"""Warm-up: the gain for a file that was opened before, and the delay of other requests.

When an editor opens a file, the gateway warms the engine's cache up with its prompt. Gain: the
first-token time of the first completion in an opened file, compared with a file that was not
opened. Delay: the first-token time of a completion with a cached prompt while the engine prefills a
warm-up, compared with an idle engine. The completion may wait for one prefill chunk, whose time is
measured in the same run.

    python -m tests.benchmarks.warmup [--up .caret/up.json] [--files 30]

To check only that the benchmark runs: `--files 2`.
"""

import argparse
import asyncio
import random
import sys
import sysconfig
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from caret.client.websocket_client import CompletionStream, open_stream
from tests.benchmarks.installation import Running, installation
from tests.benchmarks.results import Report, median, percentile, say, spread
from tests.benchmarks.synthetic_code import SUFFIX

MAX_OPENED_TO_NOT: Final = 0.5  # first token in an opened file, as a share of that in another
CHUNK_TOKENS: Final = 128  # --long-prefill-token-threshold of the engine that the benchmark starts
# Enough files to fill most of a prompt.
_OTHER_FILES: Final = (
    "argparse.py",
    "ast.py",
    "inspect.py",
    "shutil.py",
    "tarfile.py",
    "zipfile.py",
)
_MAX_CHARS: Final = 16_000
_WARM_UP_ENDED_S: Final = 1.5  # a warm-up takes much less
_WARM_UP_RUNNING_S: Final = (0.01, 0.08)  # after its start; a warm-up takes longer


class Files:
    """Files that were never opened before. Each has other files whose outlines are in its prompt.

    The paths of the other files are new each time. They come first in the prompt, so no prefix is
    cached.
    """

    def __init__(self) -> None:
        folder = Path(sysconfig.get_path("stdlib"))
        self._texts = {
            name: (folder / name).read_text()[:_MAX_CHARS].rpartition("\n")[0]
            for name in _OTHER_FILES
        }

    def make(self) -> dict[str, Any]:
        """Return the path of a new file, and its other files, as fields of a frame."""
        folder = f"warming-{random.getrandbits(48):x}"
        other_files = [
            {"path": f"{folder}/{name}", "text": text} for name, text in self._texts.items()
        ]
        return {"path": f"{folder}/main.py", "files": other_files}


@dataclass(slots=True)
class Samples:
    # By kind: "opened", "not_opened", "idle" or "warming".
    first_ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    uncached_tokens: list[float] = field(default_factory=list)  # of the files that were not opened


async def _first_token(
    stream: CompletionStream, context: dict[str, Any]
) -> tuple[float, dict[str, Any]]:
    """Return the milliseconds until the first frame, and the completion's metrics."""
    frame = {"mode": "fim", "prefix": "value = ", "suffix": SUFFIX, "max_tokens": 1}
    # Manual requests are the last to be shed.
    frame |= {"id": f"{random.getrandbits(60):x}", "trigger": "manual", **context}
    began_s = time.perf_counter()
    first_ms: float | None = None
    meta: dict[str, Any] = {}
    async for answer in stream.complete(frame):
        first_ms = first_ms or (time.perf_counter() - began_s) * 1000
        meta = answer.get("meta", meta)
    assert first_ms is not None
    return first_ms, meta


async def _measure_gain(stream: CompletionStream, files: Files, samples: Samples) -> None:
    opened, not_opened = files.make(), files.make()
    await stream.send({"type": "file_opened", "text": f"value = 1\n{SUFFIX}", **opened})
    await asyncio.sleep(_WARM_UP_ENDED_S)
    for name, context in random.sample([("opened", opened), ("not_opened", not_opened)], 2):
        took_ms, meta = await _first_token(stream, context)
        samples.first_ms[name].append(took_ms)
        if name == "not_opened":
            samples.uncached_tokens.append(meta["prompt_tokens"] - meta["cached_tokens"])


async def _measure_delay(
    stream: CompletionStream, files: Files, cached: dict[str, Any], samples: Samples
) -> None:
    for name in random.sample(["idle", "warming"], 2):
        if name == "warming":
            await stream.send(
                {"type": "file_opened", "text": f"value = 1\n{SUFFIX}", **files.make()}
            )
            await asyncio.sleep(random.uniform(*_WARM_UP_RUNNING_S))
        took_ms, _ = await _first_token(stream, cached)
        samples.first_ms[name].append(took_ms)
        await asyncio.sleep(_WARM_UP_ENDED_S)


async def _measure(running: Running, num_files: int, report: Report) -> None:
    files, samples = Files(), Samples()
    async with open_stream(running.gateway_url, running.acme_key) as stream:
        cached = files.make()
        for _ in range(3):  # so that its prompt is cached
            await _first_token(stream, cached)
        for number in range(num_files):
            say(f"file {number + 1} of {num_files}")
            await _measure_gain(stream, files, samples)
            await _measure_delay(stream, files, cached, samples)
    _report_results(report, samples)


def _report_results(report: Report, samples: Samples) -> None:
    times = samples.first_ms
    for name in ("opened", "not_opened", "idle", "warming"):
        report.figure(f"first_token.{name}", median(times[name]), "ms", **spread(times[name]))
    ratio = median(times["opened"]) / median(times["not_opened"])
    report.target("first_token.opened_to_not", ratio, "ratio", at_most=MAX_OPENED_TO_NOT)
    # The additional time of an uncached prompt, for the tokens of one chunk.
    added_ms = median(times["not_opened"]) - median(times["idle"])
    chunk_ms = added_ms * CHUNK_TOKENS / median(samples.uncached_tokens)
    report.figure("chunk", chunk_ms, "ms")
    delay_ms = median(times["warming"]) - median(times["idle"])
    report.target("delay_by_a_warm_up.p50", delay_ms, "ms", at_most=chunk_ms)
    delay_ms = percentile(times["warming"], 90) - percentile(times["idle"], 90)
    report.figure("delay_by_a_warm_up.p90", delay_ms, "ms")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--up", type=Path, help="up.json of a running installation")
    parser.add_argument(
        "--files", type=int, default=30, help="number of opened files; as many are not opened"
    )
    options = parser.parse_args(arguments)
    report = Report("warming")
    with installation(options.up) as running:
        asyncio.run(_measure(running, options.files, report))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
