"""Cancelling: from the client's wish to the gateway's end of the engine's stream.

A relay in this process stands between a gateway of our own and the engine, and notes when the
gateway closes its connection; the clock runs from the moment before the client's frame is written.
Each completion is cancelled in mid-stream, after its first text and a random pause. Also by a
closed socket and by a dropped HTTP connection; and, as information, how long the engine goes on.

    python -m tests.benchmarks.cancel [--up .caret/up.json]     takes only the engine of that one
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from caret.client.stream import Stream, open_stream
from inference.pools.catalog import read_catalog
from tests.benchmarks.code_text import SUFFIX, CodeText, tier_of
from tests.benchmarks.engine_metrics import num_running
from tests.benchmarks.figures import Report, median, percentile, rounded, say, spread
from tests.benchmarks.installation import Running, engine_of, own_gateway, own_home
from tests.benchmarks.relay import Relay, StreamEnd

MAX_CANCEL_MS: Final = 10.0
_MODE: Final = "fim"
_MAX_TOKENS: Final = 256
_PROMPT_TOKENS: Final = 128
_MAX_PAUSE_S: Final = 0.015
_PATIENCE_S: Final = 5.0
# One of so many completions must still run when it is cancelled: the model may end early.
_MAX_TRIES: Final = 100

# Asks for a completion of the prefix and cancels it; when that was (perf_counter), or None when the
# completion had ended by itself.
Cancel = Callable[[str], Awaitable[float | None]]


@dataclass(slots=True)
class Bench:
    running: Running
    relay: Relay
    text: CodeText
    options: argparse.Namespace
    report: Report
    num_ids: int = 0
    num_too_late: int = field(default=0)  # completions that ended before they were cancelled

    async def until_stream_ended_ms(self, cancel: Cancel) -> float:
        began_s, ended = await self._cancelled(cancel)
        return (ended.at_s - began_s) * 1000

    async def until_engine_idle_ms(self, cancel: Cancel) -> float:
        began_s, _ = await self._cancelled(cancel)
        async with asyncio.timeout(_PATIENCE_S):
            while await num_running(self.running.engine_url):
                pass  # each answer takes some milliseconds, which count
        return (time.perf_counter() - began_s) * 1000

    async def _cancelled(self, cancel: Cancel) -> tuple[float, StreamEnd]:
        for _ in range(_MAX_TRIES):
            prefix = self.text.sample(
                mode=_MODE, num_tokens=_PROMPT_TOKENS, max_tokens=_MAX_TOKENS
            ).prefix
            self.relay.forget()
            began_s = await cancel(prefix)
            if began_s is not None:
                async with asyncio.timeout(_PATIENCE_S):
                    ended = await self.relay.ends.get()
                if ended.by_gateway and ended.at_s >= began_s:
                    return began_s, ended
            self.num_too_late += 1
        raise RuntimeError(f"{_MAX_TRIES} completions ended before they could be cancelled")

    async def by_frame(self, stream: Stream, prefix: str) -> float | None:
        if not await self._begin(stream, prefix):
            return None
        began_s = time.perf_counter()
        await stream.send({"type": "cancel", "id": str(self.num_ids)})
        while (answer := await stream.receive())["type"] != "done":
            pass
        return began_s if answer["finish"] == "cancelled" else None

    async def by_closed_socket(self, prefix: str) -> float | None:
        async with open_stream(self.running.gateway_url, self.running.acme_key) as stream:
            if not await self._begin(stream, prefix):
                return None
            return time.perf_counter()  # leaving closes it

    async def by_dropped_http(self, prefix: str) -> float | None:
        body = {"prompt": prefix, "max_tokens": _MAX_TOKENS, "stream": True}
        headers = {"Authorization": f"Bearer {self.running.acme_key}"}
        url = f"{self.running.gateway_url}/v1/completions"
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(url, json=body) as response,
        ):
            first = await response.content.readline()
            if b'"finish_reason":null' not in first:
                return None
            await _pause()
            began_s = time.perf_counter()
            response.close()
        return began_s

    async def _begin(self, stream: Stream, prefix: str) -> bool:
        """Whether there was a first text, after which it pauses."""
        self.num_ids += 1
        frame: dict[str, Any] = {"id": str(self.num_ids), "mode": _MODE, "max_tokens": _MAX_TOKENS}
        await stream.send({"type": "complete", "prefix": prefix, "suffix": SUFFIX, **frame})
        if (await stream.receive())["type"] != "delta":
            return False
        await _pause()
        return True


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    report = Report("cancel")
    with ExitStack() as stack:
        home = stack.enter_context(own_home())
        engine_url = stack.enter_context(engine_of(options.up, home))
        asyncio.run(_with_relay(engine_url, options, report))
    return report.exit_status


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--up", type=Path, help="up.json of an installation whose engine to use")
    parser.add_argument("--cancels", type=int, default=500, help="by the cancel frame")
    parser.add_argument("--departures", type=int, default=50, help="by leaving, of each kind")
    parser.add_argument("--releases", type=int, default=50, help="until the engine itself is idle")
    return parser.parse_args(arguments)


async def _with_relay(engine_url: str, options: argparse.Namespace, report: Report) -> None:
    async with Relay(engine_url) as relay:
        # What starts and stops here blocks the loop, which has nothing else to do meanwhile.
        with (
            own_home() as home,
            own_gateway(home, engine_url=engine_url, replica=relay.url) as running,
        ):
            pool = read_catalog(running.pools_file).shared(tier_of(_MODE))
            text = CodeText(pool, seed=random.getrandbits(64))
            await _measure(Bench(running, relay, text, options, report))


async def _measure(bench: Bench) -> None:
    options, report = bench.options, bench.report
    async with open_stream(bench.running.gateway_url, bench.running.acme_key) as stream:

        async def by_frame(prefix: str) -> float | None:
            return await bench.by_frame(stream, prefix)

        until_ended, until_idle = bench.until_stream_ended_ms, bench.until_engine_idle_ms
        times = await _repeat("cancel frames", options.cancels, until_ended, by_frame)
        _tell(report, "frame", times, 99, bench.num_too_late)
        idle = await _repeat("engine idle again", options.releases, until_idle, by_frame)
        report.figure("engine_idle.p50", median(idle), "ms", **spread(idle))
    for figure, cancel in (
        ("socket_closed", bench.by_closed_socket),
        ("http_dropped", bench.by_dropped_http),
    ):
        bench.num_too_late = 0
        times = await _repeat(figure, options.departures, until_ended, cancel)
        # Of so few the p99 would be the slowest one: a hiccup of the machine, as often as not.
        _tell(report, figure, times, 90, bench.num_too_late)


async def _repeat(
    what: str, count: int, until: Callable[[Cancel], Awaitable[float]], cancel: Cancel
) -> list[float]:
    times = []
    for number in range(count):
        if number % 50 == 0:
            say(f"{what}: {number} of {count}")
        times.append(await until(cancel))
    return times


def _tell(
    report: Report, figure: str, times: Sequence[float], percent: int, num_too_late: int
) -> None:
    more = spread(times) | {"max": rounded(max(times)), "num_too_late": num_too_late}
    value = percentile(times, percent)
    report.target(f"{figure}.p{percent}", value, "ms", at_most=MAX_CANCEL_MS, **more)


async def _pause() -> None:
    await asyncio.sleep(random.uniform(0.0, _MAX_PAUSE_S))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
