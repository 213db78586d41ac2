"""Tenant isolation: can one tenant find out what another has requested?

The tenant acme requests a prompt, so that the engine caches it. The tenant globex then requests the
same prompt (`foreign`), and one that nobody has requested (`unrequested`), interleaved in random
order. The engine must report no cached tokens to globex. A two-sample Kolmogorov-Smirnov test must
find no difference between the first-token times of the two kinds. The test is made twice: with the
times that the client measures, and with those that the gateway reports. By chance, each of the two
fails once in twenty runs.

The control is the same test between acme's own cached prompts (`own`) and new ones (`new`). It must
find the difference; otherwise the test is not sensitive enough.

    python -m tests.benchmarks.isolation [--up .caret/up.json] [--prompts 200]
"""

import argparse
import asyncio
import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from scipy.stats import ks_2samp

from caret.client.websocket_client import CompletionStream, open_stream
from inference.pools.pool_config import read_pool_config
from tests.benchmarks.installation import Running, installation
from tests.benchmarks.results import Report, median, rounded, say
from tests.benchmarks.synthetic_code import SUFFIX, CodeText, tier_of

MIN_P: Final = 0.05  # with a higher p-value, the times reveal nothing
_CONTROL_P: Final = 0.001  # with a lower p-value, the control has found the difference
_MODE: Final = "fim"
_PROMPT_TOKENS: Final = 320  # ten of the engine's blocks
_PROMPTS_PER_ROUND: Final = 10  # of each kind, sent in random order
_CLOCKS: Final = ("client", "gateway")


@dataclass(frozen=True, slots=True)
class Answer:
    cached_tokens: int
    client_ms: float  # until the first frame, by the client's clock
    gateway_ms: float  # as the response's own metrics say


class Tenant:
    """Requests completions as a tenant, over one connection."""

    def __init__(self, stream: CompletionStream) -> None:
        self._stream = stream
        self._num_requests = 0

    async def request_completion(self, prefix: str) -> Answer:
        self._num_requests += 1
        frame = {"id": str(self._num_requests), "mode": _MODE, "prefix": prefix, "suffix": SUFFIX}
        began_s = time.perf_counter()
        first_ms: float | None = None
        meta: dict[str, Any] = {}
        async for answer in self._stream.complete({**frame, "max_tokens": 1}):
            first_ms = first_ms or (time.perf_counter() - began_s) * 1000
            meta = answer.get("meta", meta)
        assert first_ms is not None
        return Answer(
            cached_tokens=meta["cached_tokens"],
            client_ms=first_ms,
            # If the model wrote no text, the time of the engine's first token counts.
            gateway_ms=meta["first_token_ms"] or (meta["time_to_engine_ms"] + meta["engine_ms"]),
        )


@dataclass(slots=True)
class Answers:
    by_kind: dict[str, list[Answer]] = field(default_factory=lambda: defaultdict(list))

    def times(self, kind: str, clock: str) -> list[float]:
        return [
            answer.client_ms if clock == "client" else answer.gateway_ms
            for answer in self.by_kind[kind]
        ]


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    report = Report("isolation")
    with installation(options.up) as running:
        answers = asyncio.run(_measure(running, options.prompts))
    _report_results(report, answers)
    return report.exit_status


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--up", type=Path, help="up.json of a running installation")
    parser.add_argument(
        "--prompts",
        type=int,
        default=200,
        help=f"prompts of each kind, rounded up to a multiple of {_PROMPTS_PER_ROUND}",
    )
    return parser.parse_args(arguments)


async def _measure(running: Running, num_prompts: int) -> Answers:
    pool = read_pool_config(running.pools_file).find_shared(tier_of(_MODE))
    text = CodeText(pool, seed=random.getrandbits(64))
    answers = Answers()
    async with AsyncExitStack() as stack:
        acme, globex = [
            Tenant(await stack.enter_async_context(open_stream(running.gateway_url, key)))
            for key in (running.acme_key, running.globex_key)
        ]
        # The first request of a connection is slower, and is not measured.
        for tenant in (acme, globex):
            await tenant.request_completion(_prompts(text, 1)[0])
        for number in range(0, num_prompts, _PROMPTS_PER_ROUND):
            say(f"prompts of each kind: {number} of {num_prompts}")
            await _run_round(acme, globex, text, answers)
    return answers


async def _run_round(acme: Tenant, globex: Tenant, text: CodeText, answers: Answers) -> None:
    warmed = _prompts(text, _PROMPTS_PER_ROUND)
    for prefix in warmed:
        await acme.request_completion(prefix)
    plan = [
        *((globex, "foreign", prefix) for prefix in warmed),
        *((globex, "unrequested", prefix) for prefix in _prompts(text, _PROMPTS_PER_ROUND)),
        *((acme, "own", prefix) for prefix in warmed),
        *((acme, "new", prefix) for prefix in _prompts(text, _PROMPTS_PER_ROUND)),
    ]
    for tenant, kind, prefix in random.sample(plan, len(plan)):
        answers.by_kind[kind].append(await tenant.request_completion(prefix))


def _prompts(text: CodeText, count: int) -> list[str]:
    return [
        text.sample(mode=_MODE, num_tokens=_PROMPT_TOKENS, max_tokens=1).prefix
        for _ in range(count)
    ]


def _report_results(report: Report, answers: Answers) -> None:
    foreign_answers, own_answers = answers.by_kind["foreign"], answers.by_kind["own"]
    num_leaks = sum(answer.cached_tokens > 0 for answer in foreign_answers)
    num_hits = sum(answer.cached_tokens > 0 for answer in own_answers)
    report.target("cached_across_tenants", num_leaks, "prompts", at_most=0, n=len(foreign_answers))
    report.judged(
        "control.cached_within_tenant",
        num_hits,
        "prompts",
        passed=num_hits == len(own_answers),
        target="all",
        n=len(own_answers),
    )
    for clock in _CLOCKS:
        p, fields = _compare(answers, clock, ("foreign", "unrequested"))
        report.judged(f"ks_p.{clock}", p, "p", passed=p > MIN_P, target=f"over {MIN_P:g}", **fields)
        p, fields = _compare(answers, clock, ("own", "new"))
        passed, target = p < _CONTROL_P, f"under {_CONTROL_P:g}"
        report.judged(f"control.ks_p.{clock}", p, "p", passed=passed, target=target, **fields)


def _compare(
    answers: Answers, clock: str, kinds: tuple[str, str]
) -> tuple[float, dict[str, float]]:
    """Return the test's p-value and the further values to report."""
    first, second = (answers.times(kind, clock) for kind in kinds)
    result = ks_2samp(first, second)
    medians = {
        f"p50_{kind}_ms": rounded(median(times))
        for kind, times in zip(kinds, (first, second), strict=True)
    }
    return float(result.pvalue), {"ks": rounded(result.statistic), "n": len(first), **medians}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
