"""Cancellation latency: from the client's cancel to the end of the engine's stream.

A proxy in this process stands between the gateway and the engine, and records when the gateway
closes its connection. Each completion writes the body of a function, in the mode block over
WebSocket and in the mode fim over HTTP. The client cancels it after its first text and a random
pause, in three ways: by a frame, by closing its WebSocket, and by dropping its HTTP connection. The
clock starts just before the cancel. For information, the benchmark also reports how long the engine
continues to work after a cancel.

The engine has other cores than the gateway and this process, so that they do not compete for a
core. Each result also reports how long the gateway and this process still waited for a core
(`waited_p99`). If that is long, repeat the run on a quiet machine. Do not subtract it: both
processes may have waited at the same time.

    python -m tests.benchmarks.cancellation_latency [--up .caret/up.json] [--cancels 500]
        [--disconnects 50] [--idle-waits 50]

`--up` uses only the engine of that installation. To check only that the benchmark runs:
`--cancels 10 --disconnects 2 --idle-waits 2`.
"""

import argparse
import asyncio
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from caret.client.websocket_client import CompletionStream, open_stream
from inference.pools.pool_config import read_pool_config
from tests.benchmarks.engine_metrics import num_running
from tests.benchmarks.engine_proxy import EngineProxy, StreamEnd
from tests.benchmarks.installation import Running, create_home, engine_of, own_gateway
from tests.benchmarks.processes import pinned_to, split_cores, waited_s
from tests.benchmarks.results import Report, machine, median, percentile, rounded, say, spread
from tests.benchmarks.synthetic_code import SUFFIX, CodeText, tier_of

MAX_CANCEL_MS: Final = 10.0
_MODE: Final = "block"
_FUNCTION_HEAD: Final = (
    "    def read_all(self, paths: list[str], encoding: str) -> list[str]:\n        "
)
_MAX_TOKENS: Final = 256
_PROMPT_TOKENS: Final = 128
# The texts are made before the measurement: a process that has just computed waits longer for a
# core.
_NUM_TEXTS: Final = 16
_MAX_PAUSE_S: Final = 0.015
_TIMEOUT_S: Final = 10.0
# The model may end a completion before it is cancelled. The benchmark then tries another one.
_MAX_TRIES: Final = 100


@dataclass(frozen=True, slots=True)
class Moment:
    at_s: float  # perf_counter
    # time that this process and the gateway together have waited for a core until then
    waited_s: float


# Requests a completion of the prefix and cancels it. Returns the moment of the cancel, or None if
# the completion had already ended.
Cancel = Callable[[str], Awaitable[Moment | None]]


@dataclass(frozen=True, slots=True)
class Duration:
    whole_ms: float
    # upper bound of the part spent waiting for a core: both processes may have waited at once
    waited_ms: float


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of measurements of each kind of cancellation."""

    num_cancels: int  # cancels by a frame
    num_disconnects: int  # of each kind: closed WebSockets and dropped HTTP connections; may be 0
    num_idle_waits: int  # cancels after which the benchmark waits until the engine is idle


@dataclass(slots=True)
class Bench:
    running: Running
    proxy: EngineProxy
    prefixes: Sequence[str]
    counts: Counts
    report: Report
    num_requests: int = 0
    num_too_late: int = 0  # completions that ended before they were cancelled

    async def measure_until_stream_ended(self, cancel: Cancel) -> Duration:
        began, ended = await self._cancel_running_completion(cancel)
        waited_s = self._now().waited_s - began.waited_s
        return Duration((ended.at_s - began.at_s) * 1000, waited_s * 1000)

    async def measure_until_engine_idle(self, cancel: Cancel) -> Duration:
        began, _ = await self._cancel_running_completion(cancel)
        async with asyncio.timeout(_TIMEOUT_S):
            while await num_running(self.running.engine_url):
                pass  # the result includes the duration of the last of these requests
        now = self._now()
        return Duration((now.at_s - began.at_s) * 1000, (now.waited_s - began.waited_s) * 1000)

    async def _cancel_running_completion(self, cancel: Cancel) -> tuple[Moment, StreamEnd]:
        for _ in range(_MAX_TRIES):
            self.proxy.discard_ends()
            async with asyncio.timeout(_TIMEOUT_S):
                began = await cancel(self._new_prefix())
                if began is not None:
                    ended = await self.proxy.ends.get()
                    # Otherwise the completion ended by itself, at about the time of the cancel.
                    if ended.by_gateway and ended.at_s >= began.at_s:
                        return began, ended
            self.num_too_late += 1
        raise RuntimeError(f"{_MAX_TRIES} completions ended before they could be cancelled")

    def _new_prefix(self) -> str:
        """Return a prefix with a unique beginning, of which the engine has nothing cached."""
        return f"# {random.randbytes(12).hex()}\n{random.choice(self.prefixes)}"

    def _now(self) -> Moment:
        pids = (os.getpid(), self.running.gateway_pid)
        waited = sum(waited_s(pid) for pid in pids if pid is not None)
        return Moment(time.perf_counter(), waited)

    async def cancel_by_frame(self, stream: CompletionStream, prefix: str) -> Moment | None:
        if not await self._start_completion(stream, prefix):
            return None
        began = self._now()
        await stream.send({"type": "cancel", "id": str(self.num_requests)})
        while (answer := await stream.receive())["type"] != "done":
            pass
        return began if answer["finish_reason"] == "cancelled" else None

    async def cancel_by_closing_socket(self, prefix: str) -> Moment | None:
        async with open_stream(self.running.gateway_url, self.running.acme_key) as stream:
            if not await self._start_completion(stream, prefix):
                return None
            return self._now()  # leaving the block closes the socket

    async def cancel_by_dropping_http(self, prefix: str) -> Moment | None:
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
            await _pause_randomly()
            began = self._now()
            response.close()
        return began

    async def _start_completion(self, stream: CompletionStream, prefix: str) -> bool:
        """Start a completion, and pause after its first text.

        Returns False if the completion has no text.
        """
        self.num_requests += 1
        frame: dict[str, Any] = {
            "id": str(self.num_requests),
            "mode": _MODE,
            "max_tokens": _MAX_TOKENS,
        }
        await stream.send({"type": "complete", "prefix": prefix, "suffix": SUFFIX, **frame})
        first = await stream.receive()
        if first["type"] == "error":
            raise RuntimeError(f"the gateway returned error {first['code']}")
        if first["type"] != "delta":
            return False
        await _pause_randomly()
        return True


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    report = Report("cancel")
    machine()  # is cached: counts the cores before this process is pinned to some of them
    own_cores, other_cores = split_cores()
    with ExitStack() as stack:
        home = stack.enter_context(create_home())
        with pinned_to(other_cores):
            engine_url = stack.enter_context(engine_of(options.up, home))
        stack.enter_context(pinned_to(own_cores))
        counts = Counts(options.cancels, options.disconnects, options.idle_waits)
        asyncio.run(measure(engine_url, counts, report))
    return report.exit_status


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--up", type=Path, help="up.json of an installation whose engine is used")
    parser.add_argument("--cancels", type=int, default=500, help="number of cancel frames")
    parser.add_argument(
        "--disconnects", type=int, default=50, help="number of disconnects of each kind"
    )
    parser.add_argument(
        "--idle-waits", type=int, default=50, help="number of waits until the engine is idle"
    )
    return parser.parse_args(arguments)


async def measure(
    engine_url: str,
    counts: Counts,
    report: Report,
    *,
    render_pools: Callable[[str], str] | None = None,
) -> None:
    """Start a gateway and measure.

    `render_pools` returns the catalogue of pools for the URL of a replica. By default, the pools of
    the catalogue have the demonstration model.
    """
    async with EngineProxy(engine_url) as proxy:
        pools = None if render_pools is None else render_pools(proxy.url)
        # Starting and stopping home and gateway blocks the event loop. It has no other work then.
        with (
            create_home() as home,
            own_gateway(home, engine_url=engine_url, replica=proxy.url, pools=pools) as running,
        ):
            pool = read_pool_config(running.pools_file).find_shared(tier_of(_MODE))
            prefixes = _prefixes(CodeText(pool, seed=random.getrandbits(64)))
            await _measure(Bench(running, proxy, prefixes, counts, report))


def _prefixes(text: CodeText) -> list[str]:
    """Return prefixes that each end on the first, empty line of a function's body."""
    samples = (
        text.sample(mode=_MODE, num_tokens=_PROMPT_TOKENS, max_tokens=_MAX_TOKENS)
        for _ in range(_NUM_TEXTS)
    )
    # The function replaces the last line of the sample, which is unfinished.
    beginnings = (sample.prefix.rpartition("\n")[0] for sample in samples)
    return [f"{beginning}\n\n{_FUNCTION_HEAD}" for beginning in beginnings]


async def _measure(bench: Bench) -> None:
    counts, report = bench.counts, bench.report
    async with open_stream(bench.running.gateway_url, bench.running.acme_key) as stream:

        async def cancel_by_frame(prefix: str) -> Moment | None:
            return await bench.cancel_by_frame(stream, prefix)

        until_ended, until_idle = bench.measure_until_stream_ended, bench.measure_until_engine_idle
        durations = await _repeat("cancel frames", counts.num_cancels, until_ended, cancel_by_frame)
        _report_results(report, "frame", durations, percent=99, num_too_late=bench.num_too_late)
        idle = await _repeat(
            "engine idle again", counts.num_idle_waits, until_idle, cancel_by_frame
        )
        idle_ms = [duration.whole_ms for duration in idle]
        report.figure("engine_idle.p50", median(idle_ms), "ms", **spread(idle_ms))
    if not counts.num_disconnects:
        return
    for figure, cancel in (
        ("socket_closed", bench.cancel_by_closing_socket),
        ("http_dropped", bench.cancel_by_dropping_http),
    ):
        bench.num_too_late = 0
        durations = await _repeat(figure, counts.num_disconnects, until_ended, cancel)
        # With so few samples the p99 would be the slowest one, which is often a pause of the
        # machine.
        _report_results(report, figure, durations, percent=90, num_too_late=bench.num_too_late)


async def _repeat(
    label: str, count: int, measure_one: Callable[[Cancel], Awaitable[Duration]], cancel: Cancel
) -> list[Duration]:
    durations = []
    for number in range(count):
        if number % 50 == 0:
            say(f"{label}: {number} of {count}")
        durations.append(await measure_one(cancel))
    return durations


def _report_results(
    report: Report, figure: str, durations: Sequence[Duration], *, percent: int, num_too_late: int
) -> None:
    whole_ms = [duration.whole_ms for duration in durations]
    report.target(
        f"{figure}.p{percent}",
        percentile(whole_ms, percent),
        "ms",
        at_most=MAX_CANCEL_MS,
        **spread(whole_ms),
        max=rounded(max(whole_ms)),
        waited_p99=rounded(percentile([duration.waited_ms for duration in durations], 99)),
        num_too_late=num_too_late,
    )


async def _pause_randomly() -> None:
    await asyncio.sleep(random.uniform(0.0, _MAX_PAUSE_S))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
