"""`manage.py probe`: a synthetic user that types at all times, to detect problems early.

In each interval, the probe types a few characters into a new file, and requests a completion after
each change. Each request supersedes the previous one. The probe waits for the response to the last
request. Like an editor, the probe needs only the gateway's URL and an API key. It serves its
results as metrics on a port of its own.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from caret.client.websocket_client import CompletionStream, GatewayRefused, open_stream
from caret.foundation.environment import env_int, env_secret, env_text
from caret.foundation.log_config import configure_logging

_FUNCTION_HEAD: Final = "def total(prices: list[int]) -> int:\n    "
_LINE_STATES: Final = ("r", "re", "ret", "return ")  # the current line at each request
KEYSTROKE_S: Final = 0.08  # between two requests
MAX_WAIT_S: Final = 5.0  # for a whole probe
# The finish reasons of requests that were served. Others, such as `shed`, count as refused.
_SERVED: Final = frozenset({"stop", "length", "filtered"})
# The buckets are finest around 100 ms, the target for inline completions.
_BUCKETS_S: Final = (0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1, 2, 5)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    result: str  # text | nothing (an empty response) | refused | unreachable | late (MAX_WAIT_S)
    code: str  # error code or finish reason if the result is `refused`; otherwise ""
    first_s: float | None  # from the last request to the first text; None: no text


class ProbeMetrics:
    """The results so far, as metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._probes = Counter(
            "caret_probe_requests", "Probe requests.", ["result", "code"], registry=self.registry
        )
        self._first_token = Histogram(
            "caret_probe_first_token_seconds",
            "Time from the last keystroke to the first text, measured by the client.",
            buckets=_BUCKETS_S,
            registry=self.registry,
        )
        self._last_success = Gauge(
            "caret_probe_successes",
            "1 if the last request got a response, even an empty one.",
            registry=self.registry,
        )

    def record(self, probe_result: ProbeResult) -> None:
        self._probes.labels(probe_result.result, probe_result.code).inc()
        self._last_success.set(probe_result.result in ("text", "nothing"))
        if probe_result.first_s is not None:
            self._first_token.observe(probe_result.first_s)


def main() -> int:
    """Probe until SIGTERM or SIGINT.

    Raises BadSetting.
    """
    url = env_text("CARET_GATEWAY_URL", "http://127.0.0.1:8401")
    key = env_secret("CARET_API_KEY")
    interval_s = env_int("CARET_PROBE_INTERVAL_S", 10, low=1, high=3_600)
    host = env_text("CARET_PROBE_HOST", "127.0.0.1")
    port = env_int("CARET_PROBE_PORT", 8405, low=1, high=65_535)
    configure_logging("probe")
    metrics = ProbeMetrics()
    start_http_server(port, addr=host, registry=metrics.registry)
    asyncio.run(_run_probes(metrics, url, key, interval_s))
    return 0


async def _run_probes(metrics: ProbeMetrics, url: str, key: str, interval_s: float) -> None:
    number = 0
    while True:
        began_s = time.monotonic()
        metrics.record(await run_probe(url, key, number=number))
        number += 1
        await asyncio.sleep(max(0.0, interval_s - (time.monotonic() - began_s)))


async def run_probe(url: str, key: str, *, number: int) -> ProbeResult:
    """Probe once. Open a new connection, so that connecting is tested, too.

    `key`: API key. Give each probe another `number`. The number makes the text differ from earlier
    probes, so that no cache has the prompt.
    """
    try:
        async with asyncio.timeout(MAX_WAIT_S), open_stream(url, key) as stream:
            return await _simulate_typing(stream, number)
    except GatewayRefused as error:
        return ProbeResult("refused", error.code, None)
    except TimeoutError:
        return ProbeResult("late", "", None)
    except OSError:
        return ProbeResult("unreachable", "", None)


async def _simulate_typing(stream: CompletionStream, number: int) -> ProbeResult:
    path = f"probe/{number}.py"
    for index, line in enumerate(_LINE_STATES):
        if index:
            await asyncio.sleep(KEYSTROKE_S)
        frame = {"type": "complete", "id": f"{number}-{index}", "mode": "inline", "path": path}
        frame |= {
            "language": "python",
            "prefix": f"# {number}\n{_FUNCTION_HEAD}{line}",
            "suffix": "\n",
        }
        await stream.send(frame)
    return await _await_response(stream, str(frame["id"]), sent_s=time.monotonic())


async def _await_response(
    stream: CompletionStream, request_id: str, *, sent_s: float
) -> ProbeResult:
    first_s: float | None = None
    while True:
        frame: dict[str, Any] = await stream.receive()
        if frame.get("id") != request_id:
            continue
        if frame["type"] == "error":
            raise GatewayRefused(frame["code"], frame["message"])
        if frame["type"] == "delta":
            first_s = first_s or time.monotonic() - sent_s
        elif frame["type"] == "done":
            if frame["finish_reason"] not in _SERVED:
                return ProbeResult("refused", frame["finish_reason"], first_s)
            return ProbeResult("nothing" if first_s is None else "text", "", first_s)
