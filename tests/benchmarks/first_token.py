"""Time to first token: how much the gateway adds to vLLM's, and how much the prefix cache saves.

For each size, the same prompts go directly to the engine and through the gateway, interleaved in
random order. Each prompt is sent once cold (each route has its own cache namespace), then several
times warm. The added time is the difference, prompt by prompt, to a direct request with token IDs,
as the gateway sends them. For information, the difference to a direct request with text is reported
too: a client without a gateway would send text. The gateway's HTTP requests use the mode fim, whose
prompts have at most 2,000 tokens. So prompts of 3,000 tokens, in the mode block, reach the gateway
only by WebSocket.

    python -m tests.benchmarks.first_token [--up .caret/up.json]
"""

import argparse
import asyncio
import random
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from inference.pools.pool_config import read_pool_config
from tests.benchmarks.installation import Running, installation
from tests.benchmarks.results import Report, interval, median, say, spread
from tests.benchmarks.synthetic_code import CodeText, tier_of
from tests.benchmarks.transports import MAX_TOKENS, Route, routes

MAX_ADDED_MS: Final = 3.0
MAX_WARM_TO_COLD: Final = 0.1
_MODES: Final = {512: "fim", 1_500: "fim", 3_000: "block"}


@dataclass(frozen=True, slots=True)
class Plan:
    modes: Mapping[int, str]  # by the number of prompt tokens
    num_prompts: int  # of each size
    num_repeats: int  # warm requests for each prompt


@dataclass(slots=True)
class Samples:
    """First-token times in ms by (route, "cold" or "warm"), in the order of the prompts."""

    num_tokens: list[int] = field(default_factory=list)
    # Rounds in which every route returned text. In other rounds, every route is timed until the end
    # of its completion. A small model often writes nothing, or the filter withholds the text.
    num_by_text: int = 0
    times: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    report = Report("first_token")
    with installation(options.up) as running:
        asyncio.run(measure(running, Plan(_MODES, options.prompts, options.repeats), report))
    return report.exit_status


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--up", type=Path, help="up.json of a running installation")
    parser.add_argument("--prompts", type=int, default=30, help="number of prompts of each size")
    parser.add_argument(
        "--repeats", type=int, default=5, help="number of warm requests for each prompt"
    )
    return parser.parse_args(arguments)


async def measure(running: Running, plan: Plan, report: Report) -> None:
    rng = random.Random()
    pools = read_pool_config(running.pools_file)
    async with routes(
        running.gateway_url, http_key=running.globex_key, websocket_key=running.acme_key
    ) as all_routes:
        for size, mode in plan.modes.items():
            used_routes = [route for route in all_routes if mode == "fim" or route.name != "http"]
            text = CodeText(pools.find_shared(tier_of(mode)), seed=rng.getrandbits(64))
            await _warm_up(used_routes, text, mode)
            samples = Samples()
            for number in range(plan.num_prompts):
                say(f"{size} tokens, prompt {number + 1} of {plan.num_prompts}")
                case = (size, mode, plan.num_repeats)
                await _measure_prompt(used_routes, text, case, samples)
            names, is_longest = [route.name for route in used_routes], size == max(plan.modes)
            _report_results(report, size, names, samples)
            _report_ratios(report, size, names, samples, is_longest=is_longest)


async def _warm_up(used_routes: Sequence[Route], text: CodeText, mode: str) -> None:
    """Open the connections and run each code path once."""
    for route in used_routes:
        await route.first_token(
            text.sample(mode=mode, num_tokens=100, max_tokens=MAX_TOKENS), text.pool, mode
        )


async def _measure_prompt(
    used_routes: Sequence[Route], text: CodeText, case: tuple[int, str, int], samples: Samples
) -> None:
    """Send one prompt cold and then warm over each route.

    `case` is the prompt's number of tokens, its mode, and the number of warm requests.
    """
    size, mode, num_repeats = case
    sample = text.sample(mode=mode, num_tokens=size, max_tokens=MAX_TOKENS)
    rounds = ["cold", *["warm"] * num_repeats]
    for state in rounds:
        tokens = {
            route.name: await route.first_token(sample, text.pool, mode)
            for route in random.sample(used_routes, len(used_routes))
        }
        has_text = all(token.text_ms is not None for token in tokens.values())
        samples.num_by_text += has_text
        for name, token in tokens.items():
            time_ms = token.text_ms if has_text else token.end_ms
            assert time_ms is not None
            samples.times[name, state].append(time_ms)
    samples.num_tokens.append(len(sample.prompt.token_ids))


def _report_results(report: Report, size: int, names: Sequence[str], samples: Samples) -> None:
    about = {"prompt_tokens": median(samples.num_tokens), "num_by_text": samples.num_by_text}
    for state in ("cold", "warm"):
        for name in names:
            times = samples.times[name, state]
            report.figure(f"{name}.{state}.{size}", median(times), "ms", **spread(times), **about)
        for name in names:
            if name in ("websocket", "http"):
                _report_added(report, samples, name=name, state=state, size=size)


def _report_added(report: Report, samples: Samples, *, name: str, state: str, size: int) -> None:
    """Report the time that the gateway adds on the route `name`."""
    through_gateway = samples.times[name, state]
    for direct_route, kind in (("direct", ""), ("direct_text", "_to_text")):
        pairs = list(zip(through_gateway, samples.times[direct_route, state], strict=True))
        added = [own - direct for own, direct in pairs]
        ratio = round(median([own / direct for own, direct in pairs]), 3)
        more = spread(added) | {"interval95": interval(added), "ratio": ratio}
        if state == "warm" and direct_route == "direct":
            figure = f"{name}.added.{state}.{size}"
            report.target(figure, median(added), "ms", at_most=MAX_ADDED_MS, **more)
        else:
            # Comparisons with a request of text are for information only. Cold results have no
            # target either: two equal prefills differ by more than the gateway adds, as the
            # interval shows.
            report.figure(f"{name}.added{kind}.{state}.{size}", median(added), "ms", **more)


def _report_ratios(
    report: Report, size: int, names: Sequence[str], samples: Samples, *, is_longest: bool
) -> None:
    for name in names:
        value = median(samples.times[name, "warm"]) / median(samples.times[name, "cold"])
        figure = f"{name}.warm_to_cold.{size}"
        if is_longest:
            report.target(figure, value, "ratio", at_most=MAX_WARM_TO_COLD)
        else:
            report.figure(figure, value, "ratio")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
